/** Width and height in pixels, as a viewer would show the image. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** A token and how often it stands there in a row. */
export type TokenRun = readonly [token: string, count: number]

/** The tokens that stand for one image, in their order. */
export type ImageLayout = readonly TokenRun[]

/** How one model's processor lays images out as tokens: by their size alone, without looking at pixels. */
export interface ImageProcessor {
  /** The family it belongs to, `qwen-vl` say. */
  readonly family: string
  /** What stands in the text that a chat template writes for an image, to be replaced by its layout. */
  readonly placeholder: string
  /** What is written for an image into a content that is one text, if a template takes no parts. */
  readonly inText: string
  /** Lays out one image. Throws an `ImageRefusedError` if the model's own processor refuses that size. */
  layout(size: ImageSize): ImageLayout
}

/** The model's own processor takes no image of this size, or the image cannot be read. */
export class ImageRefusedError extends Error {
  override name = 'ImageRefusedError'
}

/** How many tokens a layout has. Texts between tokens, line breaks say, count as one. */
export function countTokens(layout: ImageLayout): number {
  return layout.reduce((total, [, count]) => total + count, 0)
}

/** A layout as the text that a tokenizer encodes. */
export function layoutText(layout: ImageLayout): string {
  return layout.map(([token, count]) => token.repeat(count)).join('')
}
