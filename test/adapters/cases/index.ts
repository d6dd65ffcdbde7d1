import type { Topic } from '../case.ts'
import { admission } from './admission.ts'
import { bodies } from './bodies.ts'
import { concurrency } from './concurrency.ts'
import { connections } from './connections.ts'
import { durability } from './durability.ts'
import { failures } from './failures.ts'
import { final } from './final.ts'
import { headers } from './headers.ts'
import { keys } from './keys.ts'
import { late } from './late.ts'
import { operations } from './operations.ts'
import { packedBodies } from './packed.ts'
import { paths } from './paths.ts'
import { requests } from './requests.ts'
import { scope } from './scope.ts'
import { storeAway } from './store-away.ts'
import { streams } from './streams.ts'
import { validation } from './validation.ts'

/** In the order in which the table of results has them. */
export const TOPICS: readonly Topic[] = [
  bodies,
  requests,
  packedBodies,
  headers,
  failures,
  keys,
  scope,
  paths,
  final,
  durability,
  concurrency,
  storeAway,
  late,
  connections,
  streams,
  operations,
  admission,
  validation,
]
