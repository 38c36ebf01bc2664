import type { Config } from '../config.ts'
import { type ImageProcessor, ImageRefusedError, type ImageSize } from '../layout.ts'

/** Images of this many times more in one direction than in the other are refused. */
const mostStretched = 200

/** Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5: as many placeholders as merged patches. */
export function qwenProcessor(config: Config): ImageProcessor {
  const merge = config.whole('merge_size', 2)
  const factor = config.whole('patch_size', 14) * merge
  const size = config.part('size')
  const least = config.has('min_pixels')
    ? config.whole('min_pixels', 1)
    : size.whole('shortest_edge', 56 * 56)
  const most = config.has('max_pixels')
    ? config.whole('max_pixels', 1)
    : size.whole('longest_edge', 28 * 28 * 1280)
  return {
    family: 'qwen-vl',
    placeholder: '<|image_pad|>',
    inText: '<|vision_start|><|image_pad|><|vision_end|>',
    layout(image) {
      const { width, height } = config.flag('do_resize', true)
        ? resized(image, { factor, least, most })
        : image
      return [['<|image_pad|>', Math.floor(width / factor) * Math.floor(height / factor)]]
    },
  }
}

interface Bounds {
  /** Both sides become multiples of it. */
  readonly factor: number
  readonly least: number
  readonly most: number
}

/** The nearest size with sides that are multiples of the factor, and with a number of pixels within bounds. */
function resized({ width, height }: ImageSize, { factor, least, most }: Bounds): ImageSize {
  const stretched = Math.max(width, height) / Math.min(width, height)
  if (stretched > mostStretched)
    throw new ImageRefusedError(
      `an image of ${width} x ${height} is ${Math.round(stretched)} times longer in one direction; the model takes at most ${mostStretched}`,
    )
  const rounded = {
    width: roundHalfEven(width / factor) * factor,
    height: roundHalfEven(height / factor) * factor,
  }
  const pixels = rounded.width * rounded.height
  if (pixels > most) {
    const beta = Math.sqrt((height * width) / most)
    const shrunk = (side: number) => Math.max(factor, Math.floor(side / beta / factor) * factor)
    return { width: shrunk(width), height: shrunk(height) }
  }
  if (pixels < least) {
    const beta = Math.sqrt(least / (height * width))
    const grown = (side: number) => Math.ceil((side * beta) / factor) * factor
    return { width: grown(width), height: grown(height) }
  }
  return rounded
}

/** Rounds as Python's `round` does: halves to the even neighbour. */
function roundHalfEven(value: number): number {
  const below = Math.floor(value)
  if (value - below !== 0.5) return Math.round(value)
  return below % 2 === 0 ? below : below + 1
}
