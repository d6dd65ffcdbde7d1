import { inject } from 'vitest'
import { testCommands } from './commands.ts'

testCommands(() => inject('adminUrl'))
