export * from './record.ts'
export * from './transitions.ts'
