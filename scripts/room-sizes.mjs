// Prints files and lines of code by floor and room, tests not counted: `node scripts/room-sizes.mjs [REVISION]`; without one, as it stands.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const [revision] = process.argv.slice(2)
const git = (...words) => execFileSync('git', words, { encoding: 'utf8', maxBuffer: 2 ** 28 })
const text = 'packages/text/src'
const listed = revision
  ? git('ls-tree', '-r', '--name-only', revision, 'src', text)
  : git('ls-files', '--cached', '--others', '--exclude-standard', 'src', text)
const isCode = file => /\.ts$/.test(file) && !/\.(test|test-d|conformance)\.ts$/.test(file)
const read = file => (revision ? git('show', `${revision}:${file}`) : readFileSync(file, 'utf8'))
/** Floors of today; revisions before them have rooms only. */
const floors = new Set(['base', 'engine', 'run', 'learn', 'worlds', 'doors'])

/** The floor of a file and its room; what lies directly in `src` is the front door. */
function placeOf(file) {
  const parts = file.startsWith(text)
    ? ['text', ...file.split('/').slice(3)]
    : file.split('/').slice(1)
  const [first, second] = parts
  if (parts.length === 1) return ['the front door', '']
  if (!floors.has(first) && first !== 'text') return [first, '']
  return [first, parts.length > 2 ? second : '']
}

const sizes = new Map()
function add(name, file, lines) {
  const size = sizes.get(name) ?? { files: 0, lines: 0, folders: new Map() }
  sizes.set(name, size)
  const folder = file.slice(0, file.lastIndexOf('/'))
  size.files++
  size.lines += lines
  size.folders.set(folder, (size.folders.get(folder) ?? 0) + 1)
}
for (const file of listed.split('\n').filter(isCode)) {
  const lines = read(file).split('\n').length - 1
  const [floor, room] = placeOf(file)
  add(floor, file, lines)
  if (room !== '') add(`${floor}/${room}`, file, lines)
  add('~ all', file, lines)
}
for (const [name, { files, lines, folders }] of [...sizes].sort()) {
  const isRoom = name.includes('/')
  const shown = isRoom ? `  ${name.split('/')[1]}` : name.replace('~ ', '')
  const most = `${String(Math.max(...folders.values())).padStart(5)} in one folder`
  console.log(
    `${shown.padEnd(20)}${String(files).padStart(5)} files${String(lines).padStart(8)} lines${most}`,
  )
}
