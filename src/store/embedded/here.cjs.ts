/** What here.ts is in the CommonJS build, which has no `import.meta`: see tsconfig.cjs.json. */
export const HERE: string = __filename
