// One thing by other people that is inside a program or an image, and where its licence is found.

export interface Part {
  /** Package URL, by which tools know it. */
  purl: string
  name: string
  version: string
  /** SPDX expression, or the words of the part itself; null if it says nothing. */
  license: string | null
  /** The licence as it came with the part; null if none came. */
  text: string | null
}

export const uniqueParts = (parts: readonly Part[]): Part[] =>
  [...new Map(parts.map((part) => [part.purl, part])).values()].sort((a, b) => (a.purl < b.purl ? -1 : 1))

/** Begin of licence texts → SPDX id. The order matters: a longer licence quotes a shorter one. */
const TEXTS: ReadonlyArray<[pattern: RegExp, id: string]> = [
  [/Mozilla Public License,? Version 2\.0/i, 'MPL-2.0'],
  [/Apache License\s+Version 2\.0/i, 'Apache-2.0'],
  [/GNU LESSER GENERAL PUBLIC LICENSE\s+Version 3/i, 'LGPL-3.0-only'],
  [/Permission to use, copy, modify, and\/or distribute this software/i, 'ISC'],
  [/Permission to use, copy, modify, and distribute this software/i, 'ISC'],
  [/Redistribution and use in source and binary forms[\s\S]*(Neither the name|names? of (its|the) (contributors|author))/i, 'BSD-3-Clause'],
  [/Redistribution and use in source and binary forms/i, 'BSD-2-Clause'],
  [/Permission is hereby granted, free of charge/i, 'MIT'],
  [/This is free and unencumbered software released into the public domain/i, 'Unlicense'],
  [/CC0 1\.0 Universal/i, 'CC0-1.0'],
]

export const licenseOfText = (text: string): string | null => TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? null

/** Libraries that are linked into Bun, by its page about licences. Bun's version is theirs. */
const BUN_LIBRARIES: Readonly<Record<string, string>> = {
  'javascriptcore (webkit)': 'LGPL-2.0-or-later',
  boringssl: 'OpenSSL AND ISC AND Apache-2.0',
  brotli: 'MIT',
  'c-ares': 'MIT',
  icu: 'ICU',
  libarchive: 'BSD-2-Clause',
  libbase64: 'BSD-2-Clause',
  libdeflate: 'MIT',
  libuv: 'MIT',
  'lol-html': 'BSD-3-Clause',
  'ls-hpack': 'MIT',
  mimalloc: 'MIT',
  picohttpparser: 'MIT OR Artistic-1.0-Perl',
  simdutf: 'Apache-2.0',
  sqlite: 'blessing',
  tinycc: 'LGPL-2.1-only',
  usockets: 'Apache-2.0',
  uwebsockets: 'Apache-2.0',
  'zlib-ng': 'Zlib',
  zstd: 'BSD-3-Clause OR GPL-2.0-only',
}

export const bunParts = (version: string): Part[] => [
  { purl: `pkg:npm/bun@${version}`, name: 'bun', version, license: 'MIT', text: null },
  ...Object.entries(BUN_LIBRARIES).map(([name, license]) => ({
    ...{ purl: `pkg:generic/${encodeURIComponent(name)}?bun=${version}`, name, version: `as in bun ${version}`, license, text: null },
  })),
]
