import type { ImageRun } from '../trajectory-shapes.ts'

/** The images among the tokens `[low, high)`, counted from there. */
export function imageRunsOn(
  images: readonly ImageRun[],
  low: number,
  high: number,
): readonly ImageRun[] {
  return images
    .filter(({ start, end }) => start < high && low < end)
    .map(image => ({ ...image, start: image.start - low, end: image.end - low }))
}
