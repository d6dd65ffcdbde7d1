import type { Stack } from './stack.ts'
import { drizzleStack } from './stacks/drizzle.ts'
import { knexStack } from './stacks/knex.ts'
import { kyselyStack } from './stacks/kysely.ts'
import { mikroormStack } from './stacks/mikroorm.ts'
import { prismaStack } from './stacks/prisma.ts'
import { sequelizeStack } from './stacks/sequelize.ts'
import { typeormStack } from './stacks/typeorm.ts'

export const STACKS: readonly Stack[] = [
  drizzleStack,
  kyselyStack,
  knexStack,
  typeormStack,
  prismaStack,
  mikroormStack,
  sequelizeStack,
]
