import type { Topic } from '../case.ts'
import { bodies } from './bodies.ts'

/** In the order in which the table of results has them. */
export const TOPICS: readonly Topic[] = [bodies]
