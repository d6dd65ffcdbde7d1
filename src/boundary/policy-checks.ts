/** Says what is wrong with an option, with the route that it is of. */
export type Refuse = (detail: string) => never

export function oneOf<T extends string>(refuse: Refuse, name: string, value: T, allowed: readonly T[]): T {
  return allowed.includes(value) ? value : refuse(`${name} is one of ${allowed.join(', ')}.`)
}

export function whole(refuse: Refuse, name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  return refuse(`${name} is a whole number, at least 1.`)
}
