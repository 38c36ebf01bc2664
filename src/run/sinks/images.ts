import type { ImagePlace } from '../../base/core/image.ts'
import type { Row } from '../../base/core/row.ts'
import { promptLength } from './credited-row.ts'
import { type ExportGroup, type Format, type FormatOptions, RefusedError } from './format.ts'

/** An image of a row as files hold it: where its tokens stand, and the file of its bytes. */
export interface WrittenImage extends ImagePlace {
  readonly file: string
}

/** How the files of images are named; a service has them in the folder of its run. */
export interface ImageNaming {
  readonly imageFile?: FormatOptions['imageFile'] | undefined
}

const inFolder = ({ digest, kind }: ImagePlace): string => `images/${digest}.${kind}`

/** The images of a row, with the files that an export puts beside its own. */
export function writtenImages(
  { images = [] }: Pick<Row, 'images'>,
  imageFile: FormatOptions['imageFile'] = inFolder,
): readonly WrittenImage[] {
  return images.map(image => ({ ...image, file: imageFile(image) }))
}

/** The files of a row's images in the order of their tokens; nothing of a row that shows none. */
export function imageFiles(
  { images = [] }: Pick<Row, 'images'>,
  imageFile: FormatOptions['imageFile'] = inFolder,
): readonly string[] | undefined {
  return images.length > 0 ? images.map(imageFile) : undefined
}

/** Refuses to leave images out: a trainer would see tokens of an image without its pixels. */
export function refuseImages({ name, carries }: Format, { group }: ExportGroup): void {
  if (carries.includes('images')) return
  const seen = group.members.find(({ tree }) => tree.nodes.some(({ segment }) => segment.images))
  if (!seen) return
  throw new RefusedError(
    name,
    `${seen.trajectory.id} was shown images, which have no place in it, and their tokens mean nothing without their pixels`,
    'Use --to verl, slime, skyrl, trl, jsonl or parquet.',
  )
}

/** Refuses images behind the prompt, for a trainer that takes an image column with its prompts and no more. */
export function refuseLaterImages(format: string, part: Parameters<typeof promptLength>[0]): void {
  const start = promptLength(part)
  const later = part.row.images?.find(image => image.end > start)
  if (!later) return
  throw new RefusedError(
    format,
    `${part.row.trajectory.id} was shown an image at token ${later.start}, behind the prompt of ${start}, and its trainer takes images with prompts only`,
    'Use --to verl, slime or skyrl.',
  )
}
