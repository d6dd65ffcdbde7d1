/** Where this module is, for resolving packages beside it. The CommonJS build takes here.cjs.ts in its place. */
export const HERE: string = import.meta.url
