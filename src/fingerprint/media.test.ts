import { describe, expect, it } from 'vitest'
import { isUtf8Json, readMediaType } from './media.ts'

describe('readMediaType', () => {
  it.each([
    ['application/json', 'application/json'],
    ['Application/JSON; charset=utf-8', 'application/json'],
    [' application/json ;x', 'application/json'],
    ['application/vnd.api+json; v=1', 'application/vnd.api+json'],
  ])('%j is JSON', (given, text) => expect(readMediaType(given)).toEqual({ text, json: true }))

  it.each([
    [undefined, ''],
    ['', ''],
    ['text/plain', 'text/plain'],
    ['Text/Plain ; Charset=UTF-8;', 'text/plain;charset=UTF-8'],
    ['application/jsonp', 'application/jsonp'],
    ['application/json-seq', 'application/json-seq'],
    ['text/plain;a=application/json', 'text/plain;a=application/json'],
  ])('%j is not', (given, text) => expect(readMediaType(given)).toEqual({ text, json: false }))
})

describe('JSON is UTF-8', () => {
  it.each([
    ['application/json', true],
    [undefined, true],
    ['application/json; charset=utf-8', true],
    ['application/json;charset="UTF-8"', true],
    ['application/problem+json; charset=utf8; profile=x', true],
    ['application/json; charset=utf-7', false],
    ['application/json; charset=utf-8; charset=utf-16', false],
    ['application/json; charset="utf-8', false],
    ['application/json; Charset = utf-8', false],
    ['application/json; charset*=utf-8', false],
  ])('%s: %s', (mediaType, expected) => {
    expect(isUtf8Json(mediaType)).toBe(expected)
  })
})
