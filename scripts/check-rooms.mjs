// Checks that no file imports a room or a package that rooms.json does not allow, that the rules have no cycle, and that no
// folder has too many files.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const rooms = JSON.parse(readFileSync('rooms.json', 'utf8'))
const problems = []
/** Files of code that one folder may hold, tests not counted. */
const mostFiles = 25
// The formatter ends every import or re-export with its specifier.
const imports = /\bfrom '([^'\n]+)'$|^import '([^'\n]+)'$|\bimport\('([^'\n]+)'\)/gm

function findCycle(room, trail) {
  if (trail.includes(room)) return [...trail, room]
  for (const next of rooms[room].rooms) {
    const cycle = findCycle(next, [...trail, room])
    if (cycle) return cycle
  }
}

/** The user's own files import `index.ts`, so the room that loads them may import it too. */
function mayEnter(room, other) {
  return other === 'the front door' && rooms[room].loadsUserFiles === true
}

function checkImport(file, room, specifier) {
  if (specifier.startsWith('node:')) return
  const isTest = /\.(test|test-d|conformance)\.ts$/.test(file)
  if (specifier.startsWith('.')) {
    const target = join(file, '..', specifier).split('/')
    if (target[0] !== 'src' && !isTest) problems.push(`${file}: imports ${specifier}, outside src`)
    const other = target.length > 2 ? target[1] : 'the front door'
    const allowed =
      other === room || rooms[room].rooms.includes(other) || isTest || mayEnter(room, other)
    if (target[0] === 'src' && !allowed) problems.push(`${file}: ${room} may not import ${other}`)
    return
  }
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
  if (!isTest && !rooms[room].packages.includes(name))
    problems.push(`${file}: ${room} may not import ${name}`)
}

for (const room of Object.keys(rooms)) {
  const cycle = findCycle(room, [])
  if (cycle) problems.push(`rooms.json has a cycle: ${cycle.join(' > ')}`)
}
for (const entry of readdirSync('src', { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name)
  const room = file.split('/')[1]
  if (
    !entry.isFile() ||
    !file.endsWith('.ts') ||
    file.split('/').length < 3 ||
    file.includes('/kernels/')
  )
    continue
  if (!(room in rooms)) problems.push(`${file}: no room called ${room} in rooms.json`)
  else
    for (const match of readFileSync(file, 'utf8').matchAll(imports))
      checkImport(file, room, match[1] ?? match[2] ?? match[3])
}
const filesIn = {}
for (const entry of readdirSync('src', { recursive: true, withFileTypes: true })) {
  const isCode = entry.name.endsWith('.ts') && !/\.(test|test-d|conformance)\.ts$/.test(entry.name)
  if (isCode) filesIn[entry.parentPath] = (filesIn[entry.parentPath] ?? 0) + 1
}
for (const [folder, count] of Object.entries(filesIn))
  if (count > mostFiles) problems.push(`${folder}: ${count} files of code, more than ${mostFiles}`)
const page = readFileSync('ARCHITECTURE.md', 'utf8')
const table = `| room | is | imports |\n|---|---|---|\n${Object.entries(rooms).map(row).join('\n')}\n`
const written = page.replace(/\| room \| is \| imports \|\n(\|.*\n)+/, () => table)
if (process.argv.includes('--write')) writeFileSync('ARCHITECTURE.md', written)
else if (written !== page)
  problems.push('ARCHITECTURE.md: its table of rooms is old; node scripts/check-rooms.mjs --write')

function row([room, { is, rooms: imports }]) {
  const all = imports.length === Object.keys(rooms).length - 1
  return `| ${room} | ${is} | ${all ? 'all above' : imports.join(', ') || 'nothing'} |`
}
for (const problem of problems) console.error(problem)
process.exit(problems.length > 0 ? 1 : 0)
