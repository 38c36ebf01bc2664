import type { Message } from '@espalier/text'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { makeBlocks, numbersIn, recallOf, wrapBlock } from './blocks.ts'
import { wholeBlocks } from './whole-blocks.ts'

const none = new Set<number>()

function twoBlocks() {
  const blocks = makeBlocks()
  blocks.numberOf('the first original', 0, none)
  blocks.numberOf('the second original', 0, none)
  return blocks
}

const answer = (input: unknown, shown: readonly Message[] = []) =>
  recallOf(twoBlocks()).answer(input, shown)

describe('recallOf', () => {
  it('gives back the original of a block, bare', () => {
    expect(answer({ blocks: 2 })).toEqual({
      content: 'the second original',
      recalled: { block: 2, characters: 19, cut: 0 },
    })
  })

  it.each([
    [{ blocks: '1' }, 'the first original'],
    [{ block: 1 }, 'the first original'],
    [{ blocks: 2, block: 1 }, 'the second original'],
  ])('takes %j', (input, content) => {
    expect(answer(input).content).toBe(content)
  })

  it.each([
    ['text', 'Error: arguments must be an object'],
    [[1], 'Error: arguments must be an object'],
    [null, 'Error: arguments must be an object'],
    [{}, 'Error: missing required argument "block".'],
    [{ block: [1] }, 'Error: "block" must be a single integer: ask for one block per call.'],
    [{ block: true }, 'Error: "block" must be an integer, not true.'],
    [{ block: 1.5 }, 'Error: "block" must be an integer, not 1.5.'],
    [{ block: 'two' }, 'Error: "block" must be an integer, not "two".'],
    [{ block: { n: 1 } }, 'Error: "block" must be an integer, not {"n":1}.'],
    [{ blocks: 3 }, 'Error: block 3 not found; valid block ids are 1 to 2.'],
    [{ blocks: 0 }, 'Error: block 0 not found; valid block ids are 1 to 2.'],
    [{ blocks: -1 }, 'Error: block -1 not found'],
  ])('[O1] refuses %j with an answer that the policy can learn from', (input, content) => {
    const refused = answer(input)
    expect(refused.content).toContain(content)
    expect(refused.problem).toBe('invalid-arguments')
    expect(refused.recalled).toBeUndefined()
  })

  it('says so where nothing was condensed', () => {
    expect(recallOf(makeBlocks()).answer({ block: 1 }, []).content).toBe(
      'Error: block 1 not found; no blocks available.',
    )
  })

  it('gives a block once while the policy sees it, and again when it does not', () => {
    const seen: Message = { role: 'tool', tool_call_id: 'c', content: 'the first original' }
    const again = answer({ blocks: 1 }, [seen])
    expect(again.content).toBe('Block 1 is already expanded above; re-read it there.')
    expect(again.content.startsWith('Error')).toBe(false)
    expect(again.problem).toBeUndefined()
    expect(answer({ block: 1 }, []).content).toBe('the first original')
  })

  it('bounds what it gives back, in code points', () => {
    const blocks = makeBlocks()
    blocks.numberOf('🌳'.repeat(30), 0, none)
    const { content, recalled } = recallOf(blocks, { characters: 10 }).answer({ block: 1 }, [])
    expect(content).toBe(`${'🌳'.repeat(10)}\n[20 characters left out]`)
    expect(recalled).toEqual({ block: 1, characters: 10, cut: 20 })
  })

  it('is advertised with a valid JSON schema that takes one integer', () => {
    const { function: tool } = recallOf(makeBlocks()).definition
    const validate = new Ajv({ strict: true }).compile(tool.parameters)
    expect(tool.name).toBe('recall')
    expect(validate({ block: 3 })).toBe(true)
    for (const wrong of [{}, { block: '3' }, { block: [3] }, { block: 0 }, { block: 1.5 }]) {
      expect(validate(wrong)).toBe(false)
    }
  })
})

describe('recallOf under the name that Twinkle’s models know', () => {
  it('has their argument, and still takes both', () => {
    const { definition, answer: give } = recallOf(twoBlocks(), { tool: 'extract_condensed' })
    expect(definition.function.parameters).toMatchObject({ required: ['blocks'] })
    expect(give({}, []).content).toBe('Error: missing required argument "blocks".')
    expect(give({ block: 1 }, []).content).toBe('the first original')
  })
})

describe('makeBlocks', () => {
  it('numbers originals from 1 on, the same one with the same number', () => {
    const blocks = makeBlocks()
    const numbers = ['a', 'b', 'a', 'c'].map(original => blocks.numberOf(original, 0, none))
    expect(numbers).toEqual([1, 2, 1, 3])
  })

  it('keeps away from numbers that a text uses already', () => {
    const taken = numbersIn([{ role: 'user', content: 'see <block_1> and </block_3>' }])
    const blocks = makeBlocks()
    expect(['a', 'b', 'c'].map(original => blocks.numberOf(original, 0, taken))).toEqual([2, 4, 5])
  })

  it('a fork knows what there was before its turn, and goes its own way', () => {
    const blocks = makeBlocks()
    blocks.numberOf('early', 0, none)
    blocks.numberOf('late', 3, none)
    const fork = blocks.fork(2)
    expect(fork.all.map(({ original }) => original)).toEqual(['early'])
    expect(fork.numberOf('other', 2, none)).toBe(2)
    expect(blocks.all).toHaveLength(2)
  })
})

describe('wrapBlock and wholeBlocks', () => {
  it('nothing inside a block can end it', () => {
    const block = wrapBlock(1, 'a</block_1><block_2>b')
    expect(block).toBe('<block_1>a</ block_1>< block_2>b</block_1>')
    expect(wholeBlocks(`x${block}y`, new Set([1, 2]))).toEqual([
      { text: 'x', isBlock: false },
      { text: block, isBlock: true },
      { text: 'y', isBlock: false },
    ])
  })

  it('leaves alone what only looks like a block', () => {
    const text = '<block_7>not ours</block_7> <block_1>never closed <block_1>'
    expect(wholeBlocks(text, new Set([1]))).toEqual([{ text, isBlock: false }])
  })

  it('takes time in proportion to the text, whatever stands in it', () => {
    const text = '<block_1>'.repeat(200_000)
    expect(wholeBlocks(text, new Set([1]))).toHaveLength(1)
  })
})
