import express from 'express4'
import { runConformance } from './conformance.ts'
import { type ExpressPackage, expressUnderTest } from './servers/express.ts'

runConformance(expressUnderTest('Express 4', express as unknown as ExpressPackage))
