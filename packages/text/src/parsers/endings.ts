import { markers } from './markers.ts'

/** The tokens with which models end a turn. */
const endings = markers(
  '<|im_end|>',
  '<|endoftext|>',
  '<|eot_id|>',
  '<|eom_id|>',
  '<|end_of_text|>',
  '<|eot|>',
  '<|eom|>',
  '</s>',
  '<|user|>',
  '<|observation|>',
  '<|EOT|>',
  '<|eos|>',
  '<turn|>',
  '<end_of_turn>',
  '[e~[',
  '<|END_OF_TURN_TOKEN|>',
  '<|assistant_end|>',
  '<|endofassistant|>',
  '<|content_model_end_sampling|>',
  '<｜end▁of▁sentence｜>',
)

const blanks = /[ \t\r\n]*/y

/** Holds back tokens that end a turn as long as only blanks follow them. */
export class EndKeeper {
  readonly #emit: (text: string) => void
  /** Whether text was made from token ids, so that only tokens end a turn. */
  readonly #byTokens: boolean
  /** Ends of turns and blanks after them: text only if more text follows. */
  #held: string[] = []
  /** Text that may still become an end of a turn. */
  #open = ''

  constructor(emit: (text: string) => void, byTokens: boolean) {
    this.#emit = emit
    this.#byTokens = byTokens
  }

  /** Takes the next piece of text. */
  add(text: string, control: boolean): void {
    if (!this.#byTokens) this.#read(this.#open + text)
    else if (control && endings.strings.includes(text)) this.#held.push(text)
    else if (this.#held.length > 0 && text.trim() === '') this.#held.push(text)
    else {
      this.flush()
      this.#emit(text)
    }
  }

  /** Nothing to do: what is certain was passed on when it was added. */
  run(): void {}

  /** Something other than text follows: what was held is text. */
  flush(): void {
    if (this.#held.length === 0 && this.#open === '') return
    const text = this.#held.join('') + this.#open
    this.#held = []
    this.#open = ''
    this.#emit(text)
  }

  /** Nothing follows: an unfinished marker is text, and so is what was held before it. */
  end(): void {
    if (this.#open !== '') this.flush()
  }

  #read(text: string): void {
    let index = 0
    this.#open = ''
    while (index < text.length) {
      if (this.#held.length > 0) {
        blanks.lastIndex = index
        const blank = blanks.exec(text)?.[0] ?? ''
        if (blank !== '') this.#held.push(blank)
        index += blank.length
      }
      const found = endings.find(text, index)
      const stop = found?.index ?? endings.unsure(text, index)
      if (stop > index) {
        const before = this.#held.join('')
        this.#held = []
        this.#emit(before + text.slice(index, stop))
      }
      index = stop + (found?.marker.length ?? 0)
      if (found) this.#held.push(found.marker)
      else break
    }
    this.#open = text.slice(index)
  }
}
