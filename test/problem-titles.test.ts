import { expect, it } from 'vitest'
import { PROBLEMS, typeOf } from '../apps/payments/problems.ts'
import { ERRORS } from '../src/core/errors.ts'
import { PROBLEM_BASE } from '../src/http/policy.ts'
import { problemReply } from '../src/http/problem.ts'

const policy = { errors: 'problem', problemBase: PROBLEM_BASE } as const

it.each([...Object.keys(ERRORS), ...Object.keys(PROBLEMS)])(
  'a problem of type %s has one title, whether the library or the service answers',
  (code) => {
    const told = { ...ERRORS.parked, code }
    const { type, title } = JSON.parse(problemReply(told, policy).body.toString())
    expect(typeOf(code)).toEqual({ type, title })
  },
)
