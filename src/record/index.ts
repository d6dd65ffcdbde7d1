export { asLongAgain, lookedAtIn } from './come-back.ts'
export * from './looks.ts'
export * from './record.ts'
export * from './transitions.ts'
