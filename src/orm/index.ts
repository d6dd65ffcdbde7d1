/** The transaction of a protected request, as ORMs want it. Loads no ORM. */
export {
  type MikroormManager,
  mikroormTransaction,
  type SequelizeLike,
  sequelizeTransaction,
  type TypeormDataSource,
  typeormManager,
} from './bind.ts'
export { currentTx } from './current-tx.ts'
export {
  type DrizzleTransaction,
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPrisma,
  fromTypeorm,
  type KnexTransaction,
  type KyselyTransaction,
  type PrismaTransaction,
  type TypeormManager,
} from './from.ts'
export { type Driver, driverOf, poolOf } from './pool.ts'
