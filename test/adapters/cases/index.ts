import type { Topic } from '../case.ts'
import { bodies } from './bodies.ts'
import { concurrency } from './concurrency.ts'
import { durability } from './durability.ts'
import { failures } from './failures.ts'
import { final } from './final.ts'
import { headers } from './headers.ts'
import { keys } from './keys.ts'
import { scope } from './scope.ts'
import { trouble } from './trouble.ts'

/** In the order in which the table of results has them. */
export const TOPICS: readonly Topic[] = [
  bodies,
  headers,
  failures,
  keys,
  scope,
  final,
  durability,
  concurrency,
  trouble,
]
