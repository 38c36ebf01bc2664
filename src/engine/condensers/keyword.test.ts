import { type Message, textOf } from '@espalier/text'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { condenseCall } from '../../../test/condensing.ts'
import { codePoints } from './chunk.ts'
import { readEnglish, requireEnglish } from './english.ts'
import { cutAtWord } from './facts.ts'
import { isEnglish } from './frequency.ts'
import { keywordChunks, keywordCondenser } from './keyword.ts'

const dam =
  'Marta Oduya was born in Gdynia in 1931 and studied hydrology at the University of Ghent. She ' +
  'designed the Velmar Dam, which was completed in 1968 by the Norrland Power Company. The dam ' +
  'feeds three towns on the river Aska. Her brother Tomas, a composer, wrote an opera about the ' +
  'flooding of the valley.'
const library =
  'The Harrow Lane Library opened on 4 May 1912. It was funded by Elias Thorne, a tea merchant ' +
  'from Bristol. In 1944 a fire destroyed the east wing, and the city council rebuilt it with red ' +
  'brick. The library holds 48,000 volumes and a well-known collection of maps of the North Sea. ' +
  'Its current director is Ines Calder.'

async function condense(text: string, options = {}, query?: string): Promise<string> {
  const request = { text, ...(query !== undefined && { query }) }
  const result = await keywordChunks(options).condense(request, condenseCall())
  if (result.kind !== 'condensed') throw new Error(`it was ${result.kind}`)
  return result.text
}

describe('keywordChunks', () => {
  it('tells the first sentence, relations and names, in three slots', async () => {
    const lines = (await condense(library, { ratio: 1.5 })).split('\n')
    expect(lines[0]).toBe('Open: The Harrow Lane Library opened on 4 May 1912.')
    expect(lines[1]).toContain('(fire | destroyed | east wing)')
    expect(lines[1]).toContain('(current director | is | Ines Calder)')
    expect(lines[2]).toMatch(/^More: .*Elias Thorne/)
  })

  it.each([1.2, 2, 3, 4, 8, 50, 400])('never passes a ratio of %d', async ratio => {
    for (const text of [dam, library]) {
      const condensed = await condense(text, { ratio })
      expect(condensed).not.toBe('')
      expect(codePoints(condensed)).toBeLessThanOrEqual(Math.ceil(codePoints(text) / ratio))
    }
  })

  it('puts first what shares words with the question', async () => {
    const told = (query?: string) => condense(library, { ratio: 6, opening: 0 }, query)
    expect(await told()).not.toContain('volumes')
    expect(await told('How many volumes does it hold?')).toContain('48,000 volumes')
  })

  const note =
    'Meeting of the platform team on Tuesday morning. Ana thanked everyone for coming. We talked ' +
    'about the move to the new data centre and agreed that it will cost 41,200 euros, which is more ' +
    'than planned. Ben will ask the bank. The budget of the offsite was discussed at length. In the ' +
    'end it was set to 3750 dollars. Carla reported that two customers left in March because the ' +
    'search was slow. Door code of the archive: 4471. The next meeting is on 14 May in room 7.'

  it.each([
    ['How much will the move to the new data centre cost?', '41,200 euros'],
    ['What does the move cost?', '41,200'],
    ['What is the budget of the offsite?', '3750 dollars'],
    ['How many customers left?', 'two customers left'],
    ['What is the door code of the archive?', '4471'],
    ['When is the next meeting?', '14 May'],
    ['Who asks the bank?', 'Ben'],
  ])('keeps what answers %j', async (question, answer) => {
    const told = await condense(note, {}, question)
    expect(told).toMatch(/^Open: Meeting.*\nAsked: /)
    expect(told).toContain(answer)
    expect(codePoints(told)).toBeLessThanOrEqual(Math.ceil(codePoints(note) / 4))
  })

  it('keeps other things of a text where nothing is asked, or it does not answer', async () => {
    for (const question of [undefined, 'Who wrote the opera?']) {
      const told = await condense(note, {}, question)
      expect(told).toMatch(/^Open: Meeting.* morning\.\nRel: /)
      expect(told).not.toContain('41,200')
    }
  })

  it('keeps what answers a question in other languages', async () => {
    const japanese =
      '会議は火曜日の朝に開かれた。参加者は四人であった。新しい機械の費用は三百万円と決まった。' +
      '昼食は食堂で取ることになった。次の会議の日はまだ決まっていない。'
    expect(await condense(japanese, { ratio: 1.6 }, '機械の費用は?')).toContain('三百万円')
    const german =
      'Die Sitzung begann am Morgen. Alle waren da. Der Umzug kostet 8400 Euro, das ist mehr als ' +
      'geplant. Das Essen war gut. Danach gingen wir nach Hause.'
    expect(await condense(german, { ratio: 2 }, 'Was kostet der Umzug?')).toContain('8400 Euro')
  })

  it('leaves slots empty where it is told to', async () => {
    const bare = await condense(dam, { ratio: 2, relations: 0, terms: 0 })
    expect(bare).toMatch(/^Open: [^\n]*$/)
    const names = await condense(dam, { ratio: 2, relations: 0, opening: 0 })
    expect(names).toMatch(/^More: Marta Oduya, University of Ghent, Velmar Dam/)
  })

  it('keeps the words that other languages repeat', async () => {
    const german =
      'Die Stadtbibliothek wurde im Jahr 1912 eröffnet. Die Bibliothek besitzt eine Sammlung von ' +
      'Karten. Ein Kaufmann bezahlte den Bau der Bibliothek, und die Sammlung wächst.'
    expect(await condense(german, { ratio: 1.6 })).toMatch(/More: Bibliothek, Sammlung/)
    const japanese = '東京都は日本の首都である。多くの大学が東京にあり、東京大学はその一つである。'
    expect(await condense(japanese, { ratio: 1.5 })).toMatch(/^Open: 東京都は日本の首都である。/)
    for (const text of [german, japanese]) expect(isEnglish(text)).toBe(false)
    for (const text of [dam, library]) expect(isEnglish(text)).toBe(true)
  })

  it('falls back to the beginning of a text that tells nothing', async () => {
    expect(await condense('!!! ??? '.repeat(20), { ratio: 4 })).toBe('Open: !!!')
    expect(await condense('- '.repeat(50), { ratio: 20 })).toBe('- -')
  })

  it('keeps its budget and says something, for any text', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }),
      fc
        .array(fc.constantFrom(...dam.split(' '), '東京', '。', '🌳', '|'), {
          minLength: 1,
          maxLength: 60,
        })
        .map(words => words.join(' ')),
    )
    await fc.assert(
      fc.asyncProperty(text, fc.double({ min: 1.01, max: 20, noNaN: true }), async (all, ratio) => {
        const condensed = await condense(all, { ratio })
        expect(codePoints(condensed)).toBeLessThanOrEqual(
          Math.max(1, Math.ceil(codePoints(all) / ratio)),
        )
      }),
      { numRuns: process.env.ESPALIER_SOAK ? 5000 : 150, seed: 3 },
    )
  })

  it('refuses options that make no sense', () => {
    expect(() => keywordChunks({ ratio: 1 })).toThrow('keyword: ratio is 1; it must be above 1.')
    expect(() => keywordChunks({ terms: -1 })).toThrow(
      'keyword: terms is -1; it must be at least 0.',
    )
  })
})

describe('requireEnglish', () => {
  it('names the line that installs what is missing', () => {
    const missing = () => {
      throw new Error('Cannot find module')
    }
    expect(() => requireEnglish(missing)).toThrow('npm i wink-nlp wink-eng-lite-web-model')
    expect(() => requireEnglish()).not.toThrow()
  })
})

describe('readEnglish', () => {
  it('finds who did what, verbs with their auxiliaries, without pronouns as subjects', async () => {
    const { relations } = await readEnglish(dam)
    expect(relations).toContainEqual(['Marta Oduya', 'was born in', 'Gdynia'])
    expect(relations).toContainEqual([
      'Marta Oduya',
      'studied',
      'hydrology',
      'at University of Ghent',
    ])
    expect(relations).toContainEqual([
      'brother Tomas',
      'wrote',
      'opera',
      'about flooding of the valley',
    ])
    expect(relations.map(([subject]) => subject)).not.toContain('She')
  })

  it('ranks names and dates above other notions, and keeps hyphens', async () => {
    const { terms } = await readEnglish(library)
    const names = terms.filter(({ weight }) => weight >= 9).map(({ text }) => text)
    expect(names).toEqual(
      expect.arrayContaining(['Elias Thorne', 'North Sea', '4 May 1912', '1944']),
    )
    expect(terms.map(({ text }) => text)).toContain('well-known collection of maps')
  })
})

describe('cutAtWord', () => {
  it('cuts after a word in the second half, otherwise anywhere', () => {
    expect(cutAtWord('alpha beta gamma', 12)).toBe('alpha beta')
    expect(cutAtWord('a bbbbbbbbbbbbbb', 10)).toBe('a bbbbbbbb')
    expect(cutAtWord('short', 10)).toBe('short')
    expect(cutAtWord('🌳🌳🌳', 2)).toBe('🌳🌳')
  })
})

describe('keywordCondenser', () => {
  const opening: readonly Message[] = [
    { role: 'system', content: dam },
    {
      role: 'user',
      content: `Question: Who designed the Velmar Dam?\n\nContext:\n\n${dam}\n\n${library}\n\nShort one.`,
    },
  ]
  const boundary = /(?<=\n\n)/

  it('condenses the passages of an opening into numbered blocks', async () => {
    const condensing = keywordCondenser({ chunk: { boundary } }).open()
    const call = condenseCall({ opening: 2 })
    const condensed = await condensing.condense(opening, call)
    if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
    const [system, user] = condensed.messages
    expect(system).toBe(opening[0])
    const text = textOf(user!.content)
    expect(text).toMatch(
      /^Question: Who designed the Velmar Dam\?\n\nContext:\n\n<block_1>Open: [\s\S]*<\/block_1>\n\n<block_2>[\s\S]*<\/block_2>\n\nShort one\.$/,
    )
    expect(condensed.figures).toMatchObject({
      blocks: 2,
      characters: dam.length + library.length,
      failures: 0,
    })
    expect(condensing.recall!.answer({ block: 1 }, []).content).toBe(dam)
    expect(condensing.recall!.answer({ block: 2 }, []).content).toBe(library)
  })

  it('finds a question without a label, and leaves it as it is', async () => {
    const content = `${library}\n\nHow many volumes does it hold?`
    const condensing = keywordCondenser({ minimum: 20 }).open()
    const condensed = await condensing.condense([{ role: 'user', content }], condenseCall())
    if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
    const text = textOf(condensed.messages[0]!.content)
    expect(text).toMatch(/^<block_1>Open: .*\nAsked: .*48,000 volumes/)
    expect(text).toMatch(/<\/block_1>\n\nHow many volumes does it hold\?$/)
  })

  it('says why it condensed nothing', async () => {
    const messages = [{ role: 'user', content: 'Short, and that is all.' }] as const
    const condensed = await keywordCondenser().open().condense(messages, condenseCall())
    expect(condensed).toMatchObject({
      kind: 'unchanged',
      reason: 'no text of the opening has the minimum of 200 characters; the longest has 23',
    })
  })

  it('does not condense a second time what it condensed', async () => {
    const condensing = keywordCondenser({ chunk: { boundary } }).open()
    const call = condenseCall({ opening: 2 })
    const once = await condensing.condense(opening, call)
    if (once.kind === 'unchanged') throw new Error('nothing was condensed')
    expect((await condensing.condense(once.messages, call)).kind).toBe('unchanged')
  })

  it('skips short texts, other roles, and keeps images', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:,' } } as const
    const messages: readonly Message[] = [
      { role: 'user', content: [{ type: 'text', text: dam }, image] },
      { role: 'assistant', content: library },
    ]
    const condensing = keywordCondenser().open()
    const condensed = await condensing.condense(messages, condenseCall({ opening: 2 }))
    if (condensed.kind === 'unchanged') throw new Error('nothing was condensed')
    expect(condensed.messages[1]).toBe(messages[1])
    const parts = condensed.messages[0]!.content as readonly unknown[]
    expect(parts[1]).toBe(image)
    const short = await condensing.condense([{ role: 'user', content: 'hello' }], condenseCall())
    expect(short.kind).toBe('unchanged')
  })
})
