import { OnlyonceError } from '../../core/errors.ts'
import type { RoutePolicy } from '../index.ts'

/** Refuses a policy without a name where the framework has no pattern of a route that could stand for it. */
export function requireOperation<Policy extends RoutePolicy>(policy: Policy, layer: string): Policy {
  if (policy.operation === undefined)
    throw new OnlyonceError('operation_missing', { detail: `See ${layer}.` })
  return policy
}

/**
 * A pattern of a route as text: what was declared, as it was declared. Routers take text, regular expressions, and lists of both.
 *
 * @example
 * patternText('/orders/:id') // '/orders/:id'
 * patternText(['/a', /^\/b/]) // '["/a","/^\\\\/b/"]'
 */
export function patternText(pattern: unknown): string | null {
  if (typeof pattern === 'string') return pattern
  if (pattern instanceof RegExp) return String(pattern)
  if (!Array.isArray(pattern)) return null
  const texts = pattern.map(patternText)
  return texts.includes(null) ? null : JSON.stringify(texts)
}

/**
 * What a route asks for beside its path, as a part of its name: two routes that differ in it alone are two operations. In the
 * order of the names, so that the order in which they were declared does not matter.
 *
 * @example
 * constraintsText({ version: '1.2.0', host: 'a.example.com' }) // '; host=a.example.com; version=1.2.0'
 */
export function constraintsText(constraints: Readonly<Record<string, unknown>>): string {
  return Object.keys(constraints)
    .filter((name) => constraints[name] !== undefined)
    .sort()
    .map((name) => `; ${name}=${valueText(constraints[name])}`)
    .join('')
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return /^[\w.:*-]+$/.test(value) ? value : JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return String(value)
  return patternText(value) ?? JSON.stringify(value)
}
