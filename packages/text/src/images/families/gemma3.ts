import type { Config } from '../config.ts'
import type { ImageProcessor } from '../layout.ts'

/** Gemma 3: every image has the same number of soft tokens. Pan and scan, which looks for crops, is refused. */
export function gemma3Processor(config: Config, processor: Config): ImageProcessor {
  if (config.flag('do_pan_and_scan', false))
    throw new TypeError(
      'preprocessor_config.json: do_pan_and_scan is on; layouts of crops are not supported',
    )
  const tokens = processor.whole('image_seq_length', 256)
  return {
    family: 'gemma3',
    placeholder: '<start_of_image>',
    inText: '<start_of_image>',
    layout: () => [
      ['\n\n', 1],
      ['<start_of_image>', 1],
      ['<image_soft_token>', tokens],
      ['<end_of_image>', 1],
      ['\n\n', 1],
    ],
  }
}
