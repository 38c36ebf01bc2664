import { imagesIn, type Message } from '@espalier/text'
import { parseReference } from '@espalier/text/images'
import { makeImageFolder } from '../../../run/store/images/image-folder.ts'
import { runPaths } from '../../../run/store/run-folder.ts'

/** Bytes of all images that one answer brings along; the others are named by their size. */
const mostBytes = 4 << 20

/** The images that messages show, as data URLs by the reference in their place; of a kind that browsers only paint. */
export async function shownImages(
  folder: string,
  messages: readonly Message[],
): Promise<Readonly<Record<string, string>>> {
  const store = makeImageFolder(runPaths(folder).images)
  const found: Record<string, string> = {}
  let room = mostBytes
  for (const part of imagesIn(messages)) {
    const address = part.type === 'image_url' ? part.image_url.url : ''
    const image = parseReference(address)
    if (!image || image.bytes > room || address in found) continue
    // Exported runs may come without their images; they are read all the same.
    const bytes = await store.read(image).catch(() => undefined)
    if (!bytes) continue
    room -= image.bytes
    found[address] = `data:image/${image.kind};base64,${Buffer.from(bytes).toString('base64')}`
  }
  return found
}
