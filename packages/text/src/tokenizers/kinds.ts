/** What a code point is to the split patterns; each has exactly one of these bits. */
export const UPPER = 1
export const LOWER = 2
/** A letter without case, or a modifier letter. */
export const CASELESS = 4
export const MARK = 8
export const NUMBER = 16
/** White space other than a line feed or a carriage return. */
export const SPACE = 32
export const NEWLINE = 64
export const OTHER = 128
export const LETTER = UPPER | LOWER | CASELESS

const KIND_OF: Readonly<Record<string, number>> = {
  a: UPPER,
  b: LOWER,
  c: CASELESS,
  d: MARK,
  e: NUMBER,
  f: SPACE,
  g: NEWLINE,
  h: OTHER,
  '-': 0,
}

/**
 * The code points below 0x40000 in order: a kind and how many of it follow each other, 1 if not said. To find them
 * with regular expressions took a tenth of a second. Unicode 16, as the reference has it; made of what the test
 * of this file finds in Node.
 */
const RUNS = `
  h9fgf2gh18fh15e10h7a26h6b26h10fh26fh9ch7e2hbh3eche3ha23ha7b24hb8abababababababababababababababab
  abababababababababababab2abababababababab2abababababababababababababababababababababababa2babab3
  a2baba2ba3b2a4ba2ba3b3a2ba2bababa2bab2aba2ba3baba2b2cab3c4a2ba2ba2babababababababab2abababababab
  ababab2a2baba3bababababababababababababababababababababababababababababab7a2ba2b2aba4babababab69
  cb27c18h4c12h14c5h7chch17d112ababchabh2cb3hah6aha3haha2ba17ha9b35ab2a3b3abababababababababababa
  b5abhaba2b2a51b48abababababababababababababababababhd7ababababababababababababababababababababab
  ababababababa2babababababab2abababababababababababababababababababababababababababababababababab
  ababababababababababababababha38h2ch6b41h8d45hdhd2hd2hdh8c27h4c4h29d11h5c43d21e10h4c2dc99hcd7h2
  d6c2d2hd4c2e10c3h2ch16cdc30d27h2c89d11ch14e10c33d9c2h4ch2dh2c22d4cd9cd3cd5h18c25d3h4c11h5c24hc6
  h8d9c42d24hd33c54d3cd18cd7c10d2h2e10hc16d3hc8h2c2h2c22hc7hch3c4h2dcd7h2d2h2d3ch8dh4c2hc3d2h2e10
  c2h2e6h2chdh2d3hc6h4c2h2c22hc7hc2hc2hc2h2dhd5h4d2h2d3h3dh7c4hch7e10d2c3dh11d3hc9hc3hc22hc7hc2hc5
  h2dcd8hd3hd3h2ch15c2d2h2e10h9cd6hd3hc8h2c2h2c22hc7hc2hc5h2dcd7h2d2h2d3h7d3h4c2hc3d2h2e10hce6h10d
  chc6h3c3hc4h3c2hchc2h3c2h3c3h3c12h4d5h3d3hd4h2ch6dh14e13h13d5c8hc3hc23hc16h2dcd7hd3hd4h7d2hc3h2c
  h2c2d2h2e10h8e7hcd3hc8hc3hc23hc10hc5h2dcd7hd3hd4h7d2h6c2hc2d2h2e10hc2dh12d4c9hc3hc41d2cd7hd3hd4c
  h5c3de7c3d2h2e19hc6hd3hc18h3c24hc9hch2c7h3dh4d6hdhd8h6e10h2d2h13c48dc2d7h5c7d8he10h39c2hchc5hc24
  hchc10dc2d9ch2c5hchd7he10h2c4h32ch23d2h6e20hdhdhdh4d2c8hc36h4d20hd2c5d11hd36h9dh57c43d20ce10h6c6
  d4c4d3cd3c2d7c3d4c13d12cde10d4h2a38hah5ah2b43hcb3c329hc4h2c7hchc4h2c41hc4h2c33hc4h2c7hchc4h2c15h
  c57hc4h2c67h2d3h9e20h3c16h16a86h2b6h3c620h2c17fc26h5c75h3e3c8h7c18d4h9c19d3h11c18d2h12c13hc3hd2
  h12c52d32h3ch4cdh2e10h6e10h17d3hde10h6c89h7c5d2c34dch5c70h10c31hd12h4d12h10e10c30h2c5h11c44h4c26
  h6e11h37c23d5h4c53d10hd29h2de10h6e10h13ch8d31h49d5c47d17c8h3e10h17d9h12d3c30d13c2e10c44d14h12c36
  d20h8e10h3c3e10c36h2b9abh5a43h2a3h16d3hd21c4dc6dc2d3ch5b44c63b13cb34c37d64ababababababababababab
  abababababababababababababababababababababababababababababababababababababababababababababababab
  abababababababababababababababab9abababababababababababababababababababababababababababababababa
  bababababababababababababababababab9a8b6h2a6h2b8a8b8a8b6h2a6h2b8hahahahab8a8b14h2b8a8b8a8b8a8b5h
  b2a5hbh3b3hb2a5h3b4h2b2a4h4b8a5h5b3hb2a5h3f11h29f2h5fh47fh16ech2e6h5ce10h6c13h51d33h17ah4ah2ba3
  b2a3bhah3a5h6ahahaha4hba4bc4bh2b2a2h5ab4h4bhe51abe5h726e60h78e22h630e30h1132a48b48aba3b2abababa4
  bab2ab6c2a3babababababababababababababababababababababababababababababababababababababababababab
  ababababababab2h6ababd3abh9eh2b38hbh5bh2c56h7ch15dc23h9c7hc7hc7hc7hc7hc7hc7hc7hd32h47ch464fh4c2e
  h25e9d6hc5h2e3c2h4c86h2d2h2c3hc90hc4h5c43hc94h3e4h10c32h48c16h32e10h30e8he15h32e10h39e15h320
  c6592h64c22157h67c46h2c269h3c16e10c2h20abababababababababababababababababababababababcd4hd10hcab
  abababababababababababababc2d2c70e10d2h37c9h2ababababababab3abababababababababababababababababab
  abababababababababababababcb8ababa2bababababch2ababcabab3ababababababababababa5ba5bababababababa
  ba4baba2bh2abhbhbabababah21c3abc3bc7dc3dc4dc23d5h4dh3e6h10c52h12d2c50d18h10e10h6d18c6h3chc2de10
  c28d8h2c23d13h12c29h3d4c47d14h14ce10h6c5dc10e10c5hc41d14h9c3dc8d2h2e10h6c23h3cd3c50dcd3c2d2c5d2c
  dch24c3h2c11d5h2c3d2h10c6h2c6h2c6h9c7hc7hb43hc4b9ch6b80c35d8hd2h2e10h6c11172h12c23h4c49h4-1024
  h7424c366h2c106h38b7h12b5h5cdc10hc13hc5hchc2hc2hc108h33c363h18c64h2c54h40c12h4d16h16d16h64c5h
  c135h19e10h7a26h6b26h11c89h3c6h2c6h2c6h2c3h35c12hc26hc19hc2hc15h2c14h34c123h12e45h12e57h17e2h113
  dh130c29h3c49h15de27h4c32e4h9c20ec8eh5c38d5h5c30h2c36h4c8he5h42a40b40c78h2e10h6a36h4b36h4c40h8
  c52h12a11ha15ha7ha2hb11hb15hb7hb2h3c52h12c311h9c22h10c8h24c6hc42hc9h69c6h2chc44hc2h3ch2c23h2e8
  c23h2e7c31h8e9h48c19hc2h5e5c22e6h4c26h70c56h4e2c2e16h2e46cd3hd2h5d4c4hc3hc29h2d3h4de9h23c29e2h
  c29e3h32c8hc28d2h4e5h16c54h10c22h2e8c19h5e8c18h23e7h80c73h55a51h13b51h7e6c36d4h8e10h6e10c6a22h3
  d5hcb22h218e31hc42hd2h3c2h16c3h55d4c29e10ch8c22d11e4h27c18d4h42c21e7h20c23h9d3c53d15h11e30dc2d2c
  h9d4c45d11h7dh13c25h7e10h6d3c36d14he10h4cd2ch8c35dh2ch9d3c48d14c4h4d4hd2e10chch4e20h11c18hc25d12
  h6dc2dh62c7hchc4hc15hc10h7c47d12h5e10h6d4hc8h2c2h2c22hc7hc2hc5hd2cd7h2d2h2d3h2ch6dh5c5d2h2d7h3d5
  h11c10hch2chc38hcd9hdh2dhd4hd5cdch13d2h29c53d18c4h5e10h4dc3h30c48d20c2hch8e10h166c47d7h2d9h23c4
  d2h34c48d17h3ch11e10h38c43d13ch7e10h6e20h28c27h2d15h4e12h4c7h185c44d15h101a32b32e19h12c8h2ch2c8h
  c2hc24d6hd2h2d4cdcd2h12e10h70c8h2c39d7h2d7chcdh27cd10c40d7cd4h8dh8cd11c46d16h3ch18c73h199c33h15
  e10h6c9hc37d8hd8ch15e29h5c30h2d22hd14h73c7hc2hc38d6h3dhd2hd7cdh8e10h6c6hc2hc32d5hd2hd5ch7e10h310
  c19d4h9d2cdc13hc34d7h3d5h13e10dh85ch15e21h43c922h102e111h17c196h2636c97h15c1072h16dc6d15h10c3995
  h5c583h6841c30d18e10h1734c569h7c31he10h6c79he10h6c30h2d5h11c48d7h9c4h12e10he7hc21h5c19h432c45h3
  e10h198a32b32e23h105c75h4dcd55h7d4c13h64c2hcdh11d2h14c6136h8c1238h41c10h8935c4hc7hc2hc291h15ch29
  c3h2ch14c4h8c396h2308c107h5c13h3c9h7c10h3d2h4177e10h518d46h2d23h542d5h3d6h8d8h2d7h30d4h148d3h123
  e20h12e20h108e25h135a26b26a26b7hb18a26b26aha2h2ah2a2h2a4ha8b4hbhb7hb11a26b26a2ha4h2a8ha7hb26a2h
  a4ha5hah3a7hb26a26b26a26b26a26b26a26b26a26b26a26b28h2a25hb25hb6a25hb25hb6a25hb25hb6a25hb25hb6a25
  hb25hb6abh2e50h512d55h4d50h8dh14dh22d5hd15h1104b10cb20h6b6h213d7hd17h2d7hd2hd5h5c62h33dh112c45h3
  d7c7h2e10h4ch321c30dh17c44d4e10h470c28d4e10h214c30d2ce10h485c7hc4hc2hc15hc197h2e9d7h41a34b34d7c
  h4e10h791e59he3he4h76e45he15h194c4hc27hc2hch2chc10hc4hchch6ch4chchchc3hc2hch2chchchchchc2hch2c4h
  c7hc4hc4hchc10hc17h5c3hc5hc17h580e13h2787e10h1030c42720h32c4154h6c222h2c5762h14c7473h15c622h2466
  c542h1506c4939h5c4192h56400`

/** Above this, only the variation selectors of plane 14 are anything but OTHER. */
const TABLE_END = 0x40000

let table: Uint8Array | undefined

/**
 * The kind of every code point below 0x40000, built on first use. High surrogates are 0: their
 * kind is that of the pair, see `astralKind`.
 */
export function kindTable(): Uint8Array {
  table ??= buildTable()
  return table
}

/** The kind of the surrogate pair that begins at `at`. */
export function astralKind(units: Uint16Array, at: number): number {
  const point = ((units[at]! - 0xd800) << 10) + (units[at + 1]! - 0xdc00) + 0x10000
  if (point < TABLE_END) return kindTable()[point]!
  return point >= 0xe0100 && point <= 0xe01ef ? MARK : OTHER
}

function buildTable(): Uint8Array {
  const kinds = new Uint8Array(TABLE_END)
  let start = 0
  for (const [, kind, count] of RUNS.matchAll(/([-a-h])(\d*)/g)) {
    const end = start + (count === '' ? 1 : Number(count))
    kinds.fill(KIND_OF[kind!]!, start, end)
    start = end
  }
  return kinds
}
