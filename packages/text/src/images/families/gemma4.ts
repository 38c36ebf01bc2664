import type { Config } from '../config.ts'
import { type ImageProcessor, ImageRefusedError, type ImageSize } from '../layout.ts'

/** Gemma 4: the largest size of the same shape whose pooled patches are at most `max_soft_tokens`. */
export function gemma4Processor(config: Config): ImageProcessor {
  const pool = config.whole('pooling_kernel_size', 3)
  const side = config.whole('patch_size', 16) * pool
  const most = config.whole('max_soft_tokens', 280)
  return {
    family: 'gemma4',
    placeholder: '<|image|>',
    inText: '<|image|>',
    layout(image) {
      const { width, height } = fitted(image, { side, most })
      return [
        ['<|image>', 1],
        ['<|image|>', (width / side) * (height / side)],
        ['<image|>', 1],
      ]
    },
  }
}

interface Budget {
  /** Pixels of one soft token in each direction. */
  readonly side: number
  readonly most: number
}

function fitted({ width, height }: ImageSize, { side, most }: Budget): ImageSize {
  const pixels = most * side ** 2
  const factor = Math.sqrt(pixels / (height * width))
  const fit = (length: number) => Math.floor((factor * length) / side) * side
  const fitting = { width: fit(width), height: fit(height) }
  if (fitting.width === 0 && fitting.height === 0)
    throw new ImageRefusedError(
      `an image of ${width} x ${height} would be nothing within ${most} tokens`,
    )
  const thin = (ratio: number) => Math.min(Math.floor(ratio) * side, most * side)
  const chosen = {
    width: fitting.width === 0 ? side : fitting.height === 0 ? thin(width / height) : fitting.width,
    height:
      fitting.height === 0 ? side : fitting.width === 0 ? thin(height / width) : fitting.height,
  }
  if (chosen.width * chosen.height > pixels)
    throw new ImageRefusedError(`an image of ${width} x ${height} does not fit into ${most} tokens`)
  return chosen
}
