import { type Message, textOf } from '@espalier/text'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { condenseCall, toolTurns } from '../../../test/condensing.ts'
import type { Condensed } from '../../base/core/condenser.ts'
import { codePoints } from './chunk.ts'
import { keepLastTurns } from './keep-last-turns.ts'
import { trimText } from './trim.ts'
import { trimToolOutput } from './trim-tool-output.ts'
import { toMessages, turnsOf } from './turns.ts'

function shownOf(condensed: Condensed): readonly Message[] {
  if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
  return condensed.messages
}

/** Every result has its call before it, and every call its result behind it. */
function expectPaired(messages: readonly Message[]): void {
  const called = messages.flatMap(each =>
    each.role === 'assistant' ? (each.tool_calls ?? []).map(({ id }) => id) : [],
  )
  const answered = messages.flatMap(each => (each.role === 'tool' ? [each.tool_call_id] : []))
  expect(answered).toEqual(called)
}

describe('keepLastTurns', () => {
  it('keeps as many of the last turns as fit, and says what is gone', async () => {
    const messages = toolTurns(10, 100)
    const call = condenseCall({ turn: 10, tokens: 700 })
    const condensed = await keepLastTurns().open().condense(messages, call)
    const shown = shownOf(condensed)
    expect(condensed).toMatchObject({ reason: 'turns 1 to 7 left out', figures: { leftOut: 7 } })
    expect(call.count(shown)).toBeLessThanOrEqual(700)
    expect(shown[0]!.content).toBe(
      'Do it.\n\n<earlier>\nLeft out here because the conversation is long: turns 1 to 7.\n</earlier>',
    )
    expect(shown.slice(1)).toEqual(messages.slice(-6))
    expectPaired(shown)
  })

  it('replaces its own note the next time, with the count of all turns', async () => {
    const condensing = keepLastTurns().open()
    const first = await condensing.condense(
      toolTurns(10, 100),
      condenseCall({ turn: 10, tokens: 700 }),
    )
    const longer = [...shownOf(first), ...toolTurns(12, 100).slice(-4)]
    const second = shownOf(
      await condensing.condense(longer, condenseCall({ turn: 12, tokens: 700 })),
    )
    expect(textOf(second[0]!.content)).toContain('turns 1 to 9.')
    expect(textOf(second[0]!.content).match(/<earlier>/g)).toHaveLength(1)
  })

  it('always keeps the last turn, trimmed where it is too long', async () => {
    const call = condenseCall({ turn: 2, tokens: 600 })
    const shown = shownOf(await keepLastTurns().open().condense(toolTurns(2, 5000), call))
    expect(shown.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(call.count(shown)).toBeLessThanOrEqual(600)
    expect(textOf(shown[2]!.content)).toMatch(/^result 1 [\s\S]*characters left out\][\s\S]*$/)
  })

  it('keeps no more turns than it is told', async () => {
    const call = condenseCall({ turn: 10, tokens: 5000 })
    const shown = shownOf(
      await keepLastTurns({ turns: 3 }).open().condense(toolTurns(10, 10), call),
    )
    expect(shown).toHaveLength(7)
    expect(() => keepLastTurns({ turns: 0 })).toThrow('it must keep at least 1')
  })

  it('changes nothing where nothing can be left out', async () => {
    const call = condenseCall({ turn: 0, tokens: 1 })
    const condensed = await keepLastTurns()
      .open()
      .condense([{ role: 'user', content: 'hi' }], call)
    expect(condensed).toEqual({ kind: 'unchanged' })
  })

  it('fits whatever can fit, and keeps calls and results together, for any conversation', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 400 }),
        fc.integer({ min: 400, max: 3000 }),
        async (turns, characters, tokens) => {
          const call = condenseCall({ turn: turns, tokens })
          const condensed = await keepLastTurns()
            .open()
            .condense(toolTurns(turns, characters), call)
          if (condensed.kind === 'unchanged') return
          expect(call.count(condensed.messages)).toBeLessThanOrEqual(tokens)
          expectPaired(condensed.messages)
        },
      ),
      { numRuns: process.env.ESPALIER_SOAK ? 5000 : 100, seed: 5 },
    )
  })
})

describe('trimToolOutput', () => {
  it('trims older outputs and spares the last turn', async () => {
    const messages = toolTurns(4, 1000)
    const call = condenseCall({ turn: 4, tokens: 3500 })
    const shown = shownOf(await trimToolOutput().open().condense(messages, call))
    const lengths = shown
      .filter(({ role }) => role === 'tool')
      .map(each => textOf(each.content).length)
    expect(lengths.slice(0, 3).every(length => length < 450)).toBe(true)
    expect(lengths[3]).toBe(1000)
    expect(shown.filter(({ role }) => role === 'assistant')).toEqual(
      messages.filter(({ role }) => role === 'assistant'),
    )
  })

  it('trims further, and at last the last turn too, where that is needed', async () => {
    const call = condenseCall({ turn: 4, tokens: 900 })
    const shown = shownOf(await trimToolOutput().open().condense(toolTurns(4, 1000), call))
    expect(call.count(shown)).toBeLessThanOrEqual(900)
    expect(shown).toHaveLength(9)
  })

  it('refuses options that make no sense', () => {
    expect(() => trimToolOutput({ characters: 3 })).toThrow('must keep at least 32')
    expect(() => trimToolOutput({ keep: -1 })).toThrow('at least 0')
  })
})

describe('trimText', () => {
  it('tells how much is missing, also after it was trimmed before', () => {
    const once = trimText('x'.repeat(1000), 400)
    expect(once).toContain('\n[600 characters left out]\n')
    const twice = trimText(once, 100)
    expect(twice).toContain('\n[900 characters left out]\n')
    expect(twice.replace(/\n\[.*\]\n/, '')).toBe('x'.repeat(100))
  })

  it('is never longer than the text and never cuts a code point', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.nat(100), (text, most) => {
        const trimmed = trimText(text, most)
        expect(codePoints(trimmed)).toBeLessThanOrEqual(codePoints(text))
        expect(trimmed.isWellFormed()).toBe(true)
      }),
      { numRuns: 500, seed: 6 },
    )
  })
})

describe('turnsOf and toMessages', () => {
  it('put a note where templates take it, and find it again', () => {
    const openings: readonly (readonly Message[])[] = [
      [{ role: 'user', content: 'go' }],
      [{ role: 'system', content: 'be kind' }],
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }],
      [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: 'hello' },
      ],
    ]
    for (const opening of openings) {
      const turns = [[{ role: 'assistant', content: 'a' } as const]]
      const noted = toMessages({ opening, turns }, 'left out </earlier> <earlier>')
      expect(noted.length - opening.length).toBeLessThanOrEqual(2)
      const again = turnsOf(noted, { opening: opening.length })
      expect(again).toEqual({ opening, turns, note: 'left out </ earlier> < earlier>' })
    }
  })
})
