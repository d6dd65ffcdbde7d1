import { invalidRequest } from './failure.ts'

/** A parameter: a text, or named parameters inside of it. Lists have numbers as names. */
export type Parameter = string | ParameterMap
export type ParameterMap = Map<string, Parameter>

const PARAMETERS_MAX = 1_000
const DEPTH_MAX = 5

/** Reads `a=1&b[c]=2&d[0]=3`, of a body or a query. */
export function parseForm(text: string): ParameterMap {
  const form: ParameterMap = new Map()
  if (text === '') return form
  const pairs = text.split('&')
  if (pairs.length > PARAMETERS_MAX) throw invalidRequest('There are too many parameters.')
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    if (name !== '') put(form, name, at === -1 ? '' : decode(pair.slice(at + 1)))
  }
  return form
}

function put(form: ParameterMap, name: string, value: string): void {
  const bracket = name.indexOf('[')
  if (bracket === -1) {
    form.set(name, value)
    return
  }
  const steps = [name.slice(0, bracket), ...name.slice(bracket + 1, -1).split('][')]
  if (!name.endsWith(']') || bracket === 0 || steps.length > DEPTH_MAX) {
    throw invalidRequest(`Invalid parameter name: ${name}`, 'parameter_unknown', name)
  }
  let inside = form
  for (const step of steps.slice(0, -1)) {
    const next = inside.get(step)
    if (typeof next === 'string') throw invalidRequest(`Invalid object: ${name}`, undefined, name)
    const map: ParameterMap = next ?? new Map()
    inside.set(step, map)
    inside = map
  }
  const last = steps.at(-1)!
  // a[]=1&a[]=2 is a list too.
  inside.set(last === '' ? `${inside.size}` : last, value)
}

function decode(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalidRequest('The parameters are not encoded as UTF-8.')
  }
}

/** The same text for the same parameters, in whatever order they came. */
export function canonical(form: ParameterMap): string {
  const members = [...form].sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify(
    members.map(([name, value]) => [name, typeof value === 'string' ? value : canonical(value)]),
  )
}
