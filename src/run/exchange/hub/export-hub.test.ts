import { describe, expect, it } from 'vitest'
import { readHubTarget } from './export-hub.ts'

describe('a dataset on a hub', () => {
  it('is private and takes neutral rows, unless it is said otherwise', () => {
    const plain = { owner: 'me', name: 'rows', visibility: 'private', format: 'jsonl' }
    expect(readHubTarget('hub:me/rows')).toEqual(plain)
    expect(readHubTarget('hub:me/rows,format=trl-sft,visibility=public')).toEqual({
      ...plain,
      format: 'trl-sft',
      visibility: 'public',
    })
    expect(readHubTarget('jsonl')).toBeUndefined()
  })

  it.each(['hub:', 'hub:me', 'hub:me/..', 'hub:../rows', 'hub:me/rows/more'])('is not %s', text => {
    expect(() => readHubTarget(text)).toThrow('say hub:OWNER/NAME')
  })

  it('refuses what it does not know, by name', () => {
    expect(() => readHubTarget('hub:me/rows,secret=1')).toThrow('not "secret"')
    expect(() => readHubTarget('hub:me/rows,visibility=hidden')).toThrow('private or public')
  })
})
