export { asLongAgain, lookedAtIn } from './come-back.ts'
export * from './record.ts'
export * from './transitions.ts'
