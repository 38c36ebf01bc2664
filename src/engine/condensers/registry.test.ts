import { describe, expect, it } from 'vitest'
import { condenseCall, speaking } from '../../../test/condensing.ts'
import { type CondenserNeeds, condensers, openCondenser } from './registry.ts'

const needs: CondenserNeeds = {
  openSpeaker: async uri => ({ ...speaking(['short']), name: uri }),
  countTokens: text => text.split(' ').length,
}

describe('openCondenser', () => {
  it.each(Object.keys(condensers).filter(name => name !== 'model'))(
    'opens %s by its name',
    async name => {
      const opened = await openCondenser(name, needs)
      expect(opened.condenser.name).toBe(name)
      expect(opened).toMatchObject({ above: 0.75, to: 0.5, trainSummaries: true })
    },
  )

  it('reads when and how far to condense, and the condenser’s own options', async () => {
    const opened = await openCondenser(
      'keep-last-turns:turns=2,above=0.9,to=0.4,trainSummaries=false',
      needs,
    )
    expect(opened).toMatchObject({ above: 0.9, to: 0.4, trainSummaries: false })
  })

  it('opens the model that is named, and disposes of it', async () => {
    let isOpen = true
    const opened = await openCondenser('model:policy=openai:http://localhost:1/v1?a=b,ratio=3', {
      openSpeaker: async uri => {
        expect(uri).toBe('openai:http://localhost:1/v1?a=b')
        return {
          ...speaking(['short']),
          async [Symbol.asyncDispose]() {
            isOpen = false
          },
        }
      },
    })
    await opened[Symbol.asyncDispose]()
    expect(isOpen).toBe(false)
    expect((await openCondenser('model:policy=self', needs)).condenser.name).toBe('model')
  })

  it('measures chunks in tokens, cuts at boundaries, renames and refuses the recall', async () => {
    const text = `${'one two three four. '.repeat(20)}\n\n${'five six seven. '.repeat(20)}`
    const { condenser } = await openCondenser(
      'keyword:size=40,unit=tokens,boundary=blank-line,minimum=50,tool=recall,recallCharacters=60',
      needs,
    )
    const condensing = condenser.open()
    const condensed = await condensing.condense([{ role: 'user', content: text }], condenseCall())
    expect(condensed).toMatchObject({ kind: 'rewritten' })
    expect(condensing.recall!.definition.function.name).toBe('recall')
    const answer = condensing.recall!.answer({ block: 1 }, [])
    expect(answer.recalled).toMatchObject({ characters: 60 })
    const silent = await openCondenser('keyword:recall=false', needs)
    expect(silent.condenser.open().recall).toBeUndefined()
  })

  it.each([
    [
      'nope',
      'No condenser called "nope". Known: keep-last-turns, trim-tool-output, keyword, model, self.',
    ],
    ['keyword:fast', 'condenser "keyword" has no variant "fast"'],
    ['keyword:wide=1', 'condenser "keyword" has no option "wide". Known: size, unit,'],
    ['keyword:ratio=much', 'condenser "keyword": ratio must be a number from 0 on, not "much"'],
    ['keyword:unit=bytes', 'condenser "keyword": unit must be characters or tokens, not "bytes"'],
    ['keyword:recall=yes', 'condenser "keyword": recall must be true or false, not "yes"'],
    ['self:above=2', 'condenser "self": above must be a share above 0 and up to 1, not "2"'],
    ['self:above=0.4', 'condenser "self": to is 0.5; it must be below above, 0.4.'],
    ['model', 'condenser "model" needs policy=URI'],
    ['keyword:toString=1', 'has no option "toString"'],
  ])('refuses %s, saying what was possible', async (text, message) => {
    await expect(openCondenser(text, needs)).rejects.toThrow(message)
  })
})
