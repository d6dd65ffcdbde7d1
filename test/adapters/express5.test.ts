import express from 'express'
import { runConformance } from './conformance.ts'
import { expressUnderTest } from './servers/express.ts'

runConformance(expressUnderTest('Express 5', express))
