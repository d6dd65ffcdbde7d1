/** The transaction of a protected request, as ORMs want it. Loads no ORM. */
export { type Driver, driverOf, poolOf } from './pool.ts'
