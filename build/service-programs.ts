/** The programs of the payment service, by the name that they have in apps/payments/dist. */
export const PROGRAMS = {
  main: 'main.ts',
  migrate: 'database/migrate-cli.ts',
  'ledger-verify': 'ledger/verify-cli.ts',
  reconcile: 'reconcile/cli.ts',
} as const
