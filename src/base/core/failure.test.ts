import { createContext, runInContext } from 'node:vm'
import { expect, it } from 'vitest'
import { describeCause } from './failure.ts'

it.each<[string, unknown, string]>([
  ['an error', new TypeError('no number'), 'TypeError: no number'],
  ['an error without a message', new Error(), 'no message'],
  [
    'several errors',
    new AggregateError([new Error('at ::1'), 'at 127.0.0.1']),
    'AggregateError: at ::1; at 127.0.0.1',
  ],
  [
    'an error of another realm',
    runInContext('new Error("from afar")', createContext()),
    'from afar',
  ],
  ['a text', 'just a text', 'just a text'],
  ['nothing', undefined, 'undefined'],
  ['an object with a message', { code: 7, message: 'no shelf' }, 'no shelf'],
  ['an object without one', { code: 7, status: 'gone' }, 'an object with code, status'],
  ['an object without anything', Object.create(null), 'an object without a message'],
])('says in a sentence what was thrown: %s', (_what, cause, sentence) => {
  expect(describeCause(cause)).toBe(sentence)
})
