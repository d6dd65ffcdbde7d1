/** Every command, in the order in which the help tells them. */
import type { Command } from './command.ts'
import { completionOf } from './commands/completion.ts'
import { DISCARD_RESULT, PARK, RESOLVE, UNPARK } from './commands/decide.ts'
import { ERASE } from './commands/erase.ts'
import { EVIDENCE } from './commands/evidence.ts'
import { EXPLAIN } from './commands/explain.ts'
import { GRANTS } from './commands/grants.ts'
import { ISSUE_KEY } from './commands/issue-key.ts'
import { LIST } from './commands/list.ts'
import { MIGRATE } from './commands/migrate.ts'
import { OUTBOX_LAG, OUTBOX_PARKED, OUTBOX_REPLAY } from './commands/outbox.ts'
import { REAP } from './commands/reap.ts'
import { ROTATE } from './commands/rotate.ts'
import { SHOW } from './commands/show.ts'
import { STUCK } from './commands/stuck.ts'
import { WEBHOOKS_REPLAY } from './commands/webhooks.ts'
import { DOCTOR } from './doctor/index.ts'

export const COMMANDS: readonly Command[] = [
  MIGRATE,
  GRANTS,
  DOCTOR,
  EXPLAIN,
  LIST,
  SHOW,
  RESOLVE,
  PARK,
  UNPARK,
  EVIDENCE,
  DISCARD_RESULT,
  STUCK,
  REAP,
  ISSUE_KEY,
  ROTATE,
  ERASE,
  OUTBOX_LAG,
  OUTBOX_PARKED,
  OUTBOX_REPLAY,
  WEBHOOKS_REPLAY,
  completionOf(() => COMMANDS),
]
