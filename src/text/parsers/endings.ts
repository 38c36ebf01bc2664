import type { StageReader } from './blocks.ts'
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

/** Drops the tokens that end a turn, where nothing but blanks follows them. */
export const endingReader: StageReader = function* (source, sink) {
  for (;;) {
    if ((yield* source.until(endings, sink.content)) === undefined) return
    const held = source.collect()
    for (let ending = yield* here(source); ending; ending = yield* here(source)) {
      source.skip(ending.length)
      yield* source.spaces()
    }
    const text = held.text()
    held.close()
    if (!source.finished) sink.content(text, source.position - text.length)
  }
}

const here: (source: Parameters<StageReader>[0]) => Generator<undefined, string | undefined> =
  function* (source) {
    const found = yield* source.spot(endings, { limit: 0 })
    return found?.marker
  }
