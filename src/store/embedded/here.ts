/** Where this module is, for resolving packages beside it. The CommonJS build puts `__filename` in its place. */
// biome-ignore lint/suspicious/noTsIgnore: it is an error in one of the two builds only.
// @ts-ignore
export const HERE: string = import.meta.url
