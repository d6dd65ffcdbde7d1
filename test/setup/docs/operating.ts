/** What the blocks about operators take as given. */
import type { RecordId } from '../../../src/index.ts'

export declare const id: RecordId
export declare const headers: Record<string, string>
export declare const body: string
