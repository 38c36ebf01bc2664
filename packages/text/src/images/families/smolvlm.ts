import type { Config } from '../config.ts'
import type { ImageLayout, ImageProcessor, ImageSize, TokenRun } from '../layout.ts'

/** No image is enlarged beyond this. */
const largestSide = 4096

/** SmolVLM: tiles row by row, each with its place, and the whole image at the end. */
export function smolvlmProcessor(config: Config, processor: Config): ImageProcessor {
  const longest = config.part('size').whole('longest_edge', 4 * 364)
  const tile = config.part('max_image_size').whole('longest_edge', 364)
  const tokens = processor.whole('image_seq_len', 169)
  const resizes = config.flag('do_resize', true)
  const splits = config.flag('do_image_splitting', true)
  return {
    family: 'smolvlm',
    placeholder: '<image>',
    inText: '<image>',
    layout(image) {
      if (!splits) return whole(tokens)
      const { width, height } = tiled(resizes ? resized(image, longest) : image, tile)
      if (width <= tile && height <= tile) return whole(tokens)
      return [...tilesOf(height / tile, width / tile, tokens), ...whole(tokens)]
    },
  }
}

/** Rows are ended by a line break, and the last one by two. */
function tilesOf(rows: number, columns: number, tokens: number): ImageLayout {
  return Array.from({ length: rows }, (_, row): ImageLayout => {
    const tiles = Array.from({ length: columns }, (_, column): readonly TokenRun[] => [
      ['<fake_token_around_image>', 1],
      [`<row_${row + 1}_col_${column + 1}>`, 1],
      ['<image>', tokens],
    ])
    return [...tiles.flat(), [row === rows - 1 ? '\n\n' : '\n', 1]]
  }).flat()
}

const whole = (tokens: number): ImageLayout => [
  ['<fake_token_around_image>', 1],
  ['<global-img>', 1],
  ['<image>', tokens],
  ['<fake_token_around_image>', 1],
]

/** The longer side becomes `longest`, the other one follows; then neither is longer than the largest side. */
function resized({ width, height }: ImageSize, longest: number): ImageSize {
  const even = (side: number) => Math.max(1, side % 2 === 0 ? side : side + 1)
  const ratio = width / height
  const scaled =
    width >= height
      ? { width: longest, height: even(Math.trunc(longest / ratio)) }
      : { width: even(Math.trunc(longest * ratio)), height: longest }
  return belowLargest(scaled)
}

function belowLargest({ width, height }: ImageSize): ImageSize {
  const ratio = width / height
  if (width >= height && width > largestSide)
    return { width: largestSide, height: Math.max(1, Math.trunc(largestSide / ratio)) }
  if (height > width && height > largestSide)
    return { width: Math.max(1, Math.trunc(largestSide * ratio)), height: largestSide }
  return { width, height }
}

/** Both sides become multiples of a tile, the longer one first. */
function tiled({ width, height }: ImageSize, tile: number): ImageSize {
  const up = (side: number) => Math.ceil(side / tile) * tile
  const ratio = width / height
  if (width >= height) return { width: up(width), height: up(Math.trunc(up(width) / ratio)) }
  return { width: up(Math.trunc(up(height) * ratio)), height: up(height) }
}
