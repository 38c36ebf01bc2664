import { behindLayout } from './layout.ts'

/** How deep brackets may nest; Python's `json` gives up there as well. */
const MAXIMUM_DEPTH = 1000

/** A quote, a backslash, or a control character, which no JSON string may hold. */
const stringStop = /["\\]|[^ -\uffff]/g
const scalar = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/
const scalarEnd = /[^-+.0-9A-Za-z]/g
const escaped = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})$/

/** What may stand at the current place of a JSON text, or what is being read there. */
type Expected =
  | 'value'
  | 'first item'
  | 'first key'
  | 'key'
  | 'colon'
  | 'comma'
  | 'rest of key'
  | 'rest of string'
  | 'rest of scalar'
  | 'nothing'

/** Reads one JSON value strictly, as its text arrives; every character is looked at once. */
export class JsonScanner {
  /** Why the text is not JSON. */
  problem: string | undefined = undefined
  /** Where keys, values and items within the outermost brackets begin and end in the value. */
  readonly edges: number[] = []
  /** The closing brackets that are still to come. */
  readonly #brackets: ('}' | ']')[] = []
  #expected: Expected = 'value'
  #scalar = ''
  #text = ''
  #at = 0
  /** The place in the value of the text's first character. */
  #before = 0
  #ended = false

  /** Whether the value goes on behind what was read. */
  get waits(): boolean {
    return this.#expected !== 'nothing'
  }

  /** Reads on in `text` from `from`, to the value's end, the first problem or where text is missing. */
  read(text: string, from: number, ended: boolean): number {
    this.#text = text
    this.#before += this.#at - from
    this.#at = from
    this.#ended = ended
    while (this.waits && this.#step()) {}
    return this.#at
  }

  /** Reads one piece of the value; false if there is no more to read for now. */
  #step(): boolean {
    if (this.#expected === 'rest of scalar') return this.#readScalar()
    if (this.#expected === 'rest of string' || this.#expected === 'rest of key') {
      return this.#readString()
    }
    if (this.#brackets.length > 0) this.#at = behindLayout(this.#text, this.#at)
    const character = this.#text[this.#at]
    if (character === undefined) return this.#lack('the JSON is cut off')
    switch (this.#expected) {
      case 'colon':
        return character === ':' ? this.#pass('value') : this.#refuse(character, 'a colon')
      case 'comma':
        return this.#readComma(character)
      case 'key':
        return this.#readKey(character)
      case 'first key':
        return character === '}' ? this.#close() : this.#readKey(character)
      case 'first item':
        return character === ']' ? this.#close() : this.#readValue(character)
      default:
        return this.#readValue(character)
    }
  }

  #readComma(character: string): boolean {
    const bracket = this.#brackets[this.#brackets.length - 1]
    if (character === bracket) return this.#close()
    if (character !== ',') return this.#refuse(character, 'a comma or a closing bracket')
    return this.#pass(bracket === '}' ? 'key' : 'value')
  }

  #readKey(character: string): boolean {
    if (character !== '"') return this.#refuse(character, 'a key')
    this.#markEdge()
    return this.#pass('rest of key')
  }

  #readValue(character: string): boolean {
    this.#markEdge()
    if (character === '"') return this.#pass('rest of string')
    if (character === '{' || character === '[') return this.#open(character)
    this.#expected = 'rest of scalar'
    this.#scalar = ''
    return true
  }

  #open(bracket: '{' | '['): boolean {
    if (this.#brackets.length === MAXIMUM_DEPTH) {
      return this.#fail(`the JSON nests deeper than ${MAXIMUM_DEPTH}`)
    }
    this.#brackets.push(bracket === '{' ? '}' : ']')
    return this.#pass(bracket === '{' ? 'first key' : 'first item')
  }

  #close(): boolean {
    this.#brackets.pop()
    this.#at++
    return this.#endValue()
  }

  #readString(): boolean {
    this.#at = placeOf(stringStop, this.#text, this.#at)
    const character = this.#text[this.#at]
    if (character === undefined) return this.#lack('the JSON is cut off within a string')
    if (character === '\\') return this.#readEscape()
    if (character !== '"') return this.#fail('the JSON has a raw control character within a string')
    this.#at++
    if (this.#expected === 'rest of string') return this.#endValue()
    this.#markEdge()
    this.#expected = 'colon'
    return true
  }

  #readEscape(): boolean {
    const length = this.#text[this.#at + 1] === 'u' ? 6 : 2
    const sequence = this.#text.slice(this.#at, this.#at + length)
    if (sequence.length < length && !this.#ended) return false
    if (!escaped.test(sequence)) {
      return this.#fail(`the JSON has the unknown escape ${JSON.stringify(sequence.slice(0, 2))}`)
    }
    this.#at += length
    return true
  }

  #readScalar(): boolean {
    const end = placeOf(scalarEnd, this.#text, this.#at)
    this.#scalar += this.#text.slice(this.#at, end)
    this.#at = end
    if (end === this.#text.length && !this.#ended) return false
    if (this.#scalar === '') return this.#refuse(this.#text[end] ?? '', 'a value')
    if (!scalar.test(this.#scalar)) {
      const start = JSON.stringify(this.#scalar.slice(0, 40))
      return this.#fail(`the JSON has ${start}, which is not a JSON value`)
    }
    return this.#endValue()
  }

  #endValue(): boolean {
    this.#markEdge()
    this.#expected = this.#brackets.length > 0 ? 'comma' : 'nothing'
    return true
  }

  #markEdge(): void {
    if (this.#brackets.length === 1) this.edges.push(this.#before + this.#at)
  }

  /** Goes past a character. */
  #pass(expected: Expected): boolean {
    this.#at++
    this.#expected = expected
    return true
  }

  /** The text goes no further: for now, or for good. */
  #lack(problem: string): boolean {
    return this.#ended && this.#fail(problem)
  }

  #refuse(character: string, wanted: string): boolean {
    return this.#fail(`the JSON has ${JSON.stringify(character)} where ${wanted} belongs`)
  }

  #fail(problem: string): boolean {
    this.problem = problem
    this.#expected = 'nothing'
    return false
  }
}

/** Where the pattern's first match stands; it must match one character. */
function placeOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex - 1 : text.length
}
