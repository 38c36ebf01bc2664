import type { Config } from '../config.ts'
import { type ImageProcessor, ImageRefusedError, type TokenRun } from '../layout.ts'

/** Pixtral and Mistral Small: a row of patches, a break, the next row, and an end. */
export function pixtralProcessor(config: Config, processor: Config): ImageProcessor {
  const size = config.part('size')
  const longest = size.whole('longest_edge', 1024)
  const patch = config.whole('patch_size', 16) * processor.whole('spatial_merge_size', 1)
  const image = processor.text('image_token', '[IMG]')
  const pause = processor.text('image_break_token', '[IMG_BREAK]')
  const end = processor.text('image_end_token', '[IMG_END]')
  return {
    family: 'pixtral',
    placeholder: image,
    inText: image,
    layout({ width, height }) {
      const ratio = Math.max(1, Math.max(width, height) / longest)
      const shrunk = (side: number) => Math.floor(side / ratio)
      if (shrunk(width) < 1 || shrunk(height) < 1)
        throw new ImageRefusedError(
          `an image of ${width} x ${height} has no pixel left at ${longest}`,
        )
      const patches = (side: number) => Math.ceil(shrunk(side) / patch)
      const columns = patches(width)
      const rows = patches(height)
      return Array.from({ length: rows }, (_, row): readonly TokenRun[] => [
        [image, columns],
        [row === rows - 1 ? end : pause, 1],
      ]).flat()
    },
  }
}
