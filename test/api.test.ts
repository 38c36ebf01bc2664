import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { publicApi } from '../scripts/api.ts'

it('api.txt holds every public name with its type: `npm run api` writes it again', () => {
  const written = readFileSync('api.txt', 'utf8').split('\n')
  const now = publicApi().split('\n')
  expect(now.filter(line => !written.includes(line))).toEqual([])
  expect(written.filter(line => !now.includes(line))).toEqual([])
  expect(now.join('\n')).toBe(written.join('\n'))
}, 60_000)
