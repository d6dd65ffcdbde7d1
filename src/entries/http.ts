/** Types that routes of every framework share. */
export type {
  Admission,
  Admit,
  Asked,
  Finality,
  IdempotencyContext,
  Profile,
  Refusal,
  RoutePolicy,
  StandardSchema,
} from '../http/index.ts'
