/** What examples with an ORM take as given: as much of each ORM as they use. */
import type pg from 'pg'
import type {
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  MikroormManager,
  SequelizeLike,
  TypeormDataSource,
  TypeormManager,
} from '../../../src/orm/index.ts'

type Leads<Tx> = (work: (tx: Tx) => Promise<void>) => Promise<void>

export interface NewTransfer {
  readonly amount: number
}
export declare const Transfer: { create(row: object, options: { transaction: object }): Promise<object> }
export declare const createTransfer: (tx: object, input: object) => Promise<{ id: string }>
export declare const drizzle: (pool: pg.Pool) => {
  execute(text: string): Promise<unknown>
  insert(table: object): { values(row: object): Promise<unknown> }
}
export declare const db: {
  transaction: Leads<DrizzleTransaction> & (() => { readonly execute: Leads<KyselyTransaction> })
}
export declare const knex: { readonly transaction: Leads<KnexTransaction> }
export declare const dataSource: TypeormDataSource<{
  save(entity: object, row: object): Promise<unknown>
}> & {
  readonly transaction: Leads<TypeormManager>
}
export declare const sequelize: SequelizeLike<object>
export declare const orm: { readonly em: MikroormManager & { create(entity: object, row: object): object } }
