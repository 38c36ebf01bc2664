// npm leaves a workspace out of a package that bundles it, because it is a link. While the package is packed, the
// built files stand in the link's place: `pack-text.mjs copy` before, `pack-text.mjs link` after.
import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'

const place = 'node_modules/@espalier/text'
const source = 'packages/text'

rmSync(place, { recursive: true, force: true })
if (process.argv[2] === 'copy') {
  mkdirSync(place, { recursive: true })
  for (const name of ['package.json', 'README.md', 'LICENSE', 'dist'])
    cpSync(`${source}/${name}`, `${place}/${name}`, { recursive: true })
} else symlinkSync(`../../${source}`, place, 'junction')
