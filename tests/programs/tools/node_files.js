// Ways to use a file in Node, by their names: node node_files.js FILE WAY...
//
// Whatever fails ends the program with Node's own message.
'use strict';
const fs = require('node:fs');
const { once } = require('node:events');

const [name, ...chosen] = process.argv.slice(2);

// Whatever is waited for below comes within this time, or the way fails.
const LIMIT = 20000;

async function stream(file, flags, text) {
  const written = fs.createWriteStream(file, { flags });
  written.end(text);
  await once(written, 'close');
}

function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what}`)), LIMIT);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function watched(file) {
  const watcher = fs.watch(file);
  const change = within(once(watcher, 'change'), 'change');
  fs.appendFileSync(file, 'more\n');
  await change.finally(() => watcher.close());
}

// The first look at the file is taken some time after the call, so appends go on until one is seen.
async function polled(file) {
  let appends;
  const change = new Promise((resolve) => {
    fs.watchFile(file, { interval: 50 }, (now, before) => now.size > before.size && resolve());
    appends = setInterval(() => fs.appendFileSync(file, 'more\n'), 200);
  });
  await within(change, 'change').finally(() => {
    clearInterval(appends);
    fs.unwatchFile(file);
  });
}

async function appended(file) {
  const handle = await fs.promises.open(file, 'a+');
  await handle.appendFile('more\n');
  await handle.sync();
  const buffer = Buffer.alloc(100);
  const { bytesRead } = await handle.read(buffer, 0, 100, 0);
  await handle.close();
  if (!buffer.subarray(0, bytesRead).equals(Buffer.from('kept\nmore\n'))) {
    throw new Error('not what is there');
  }
}

const ways = {
  'appendFile': (file) => fs.promises.appendFile(file, 'more\n'),
  'appendFileSync': async (file) => fs.appendFileSync(file, 'more\n'),
  'createWriteStream-a': (file) => stream(file, 'a', 'more\n'),
  'createWriteStream-a+': (file) => stream(file, 'a+', 'more\n'),
  'createWriteStream-as': (file) => stream(file, 'as', 'more\n'),
  'createWriteStream-w': (file) => stream(file, 'w', 'gone\n'),
  'createWriteStream-r+': (file) => stream(file, 'r+', 'gone\n'),
  'createWriteStream-ax': (file) => stream(file, 'ax', 'gone\n'),
  'open-a+': appended,
  'writeFile': (file) => fs.promises.writeFile(file, 'gone\n'),
  'copyFile': (file) => fs.promises.copyFile(file, `${file}-copy`),
  'rename': (file) => fs.promises.rename(file, `${file}-moved`),
  'truncate': (file) => fs.promises.truncate(file, 0),
  'unlink': (file) => fs.promises.unlink(file),
  'watch': watched,
  'watchFile': polled,
};

async function main() {
  for (const way of chosen) {
    await ways[way](name);
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
