/** The transaction of a protected request, as ORMs want it. Loads no ORM. */
export {
  type MikroormManager,
  mikroormTransaction,
  type SequelizeLike,
  sequelizeTransaction,
  type TypeormDataSource,
  typeormManager,
} from './bind.ts'
export { type Driver, driverOf, poolOf } from './pool.ts'
