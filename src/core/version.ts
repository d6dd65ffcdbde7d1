/** The version of the package; test/contract/copies.test.ts compares it with package.json. */
export const VERSION = '0.1.0'
