// Prints files and lines of code by room, tests not counted: `node scripts/room-sizes.mjs [REVISION]`; without one, as it stands.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const [revision] = process.argv.slice(2)
const git = (...words) => execFileSync('git', words, { encoding: 'utf8', maxBuffer: 2 ** 28 })
const listed = revision
  ? git('ls-tree', '-r', '--name-only', revision, 'src')
  : git('ls-files', '--cached', '--others', '--exclude-standard', 'src')
const isCode = file => /\.ts$/.test(file) && !/\.(test|test-d|conformance)\.ts$/.test(file)
const read = file => (revision ? git('show', `${revision}:${file}`) : readFileSync(file, 'utf8'))
const rooms = {}
for (const file of listed.split('\n').filter(isCode)) {
  const room = file.split('/').length > 2 ? file.split('/')[1] : 'the front door'
  rooms[room] ??= { files: 0, lines: 0, largest: {} }
  const size = rooms[room]
  const folder = file.slice(0, file.lastIndexOf('/'))
  size.files++
  size.lines += read(file).split('\n').length - 1
  size.largest[folder] = (size.largest[folder] ?? 0) + 1
}
const pad = (text, width) => String(text).padStart(width)
let files = 0
let lines = 0
for (const [room, size] of Object.entries(rooms)) {
  files += size.files
  lines += size.lines
  const most = Math.max(...Object.values(size.largest))
  console.log(
    `${room.padEnd(16)}${pad(size.files, 5)} files${pad(size.lines, 7)} lines${pad(most, 5)} in one folder`,
  )
}
console.log(`${'all'.padEnd(16)}${pad(files, 5)} files${pad(lines, 7)} lines`)
