/** Refuses options that there are not: one that is misspelt would silently do nothing. `names` are separated by spaces. */
export function refuseUnknown(what: string, given: object, names: string): void {
  for (const name of Object.keys(given)) {
    if (!names.split(' ').includes(name))
      throw new TypeError(`${what} has no option ${name}. Its options are ${names}.`)
  }
}
