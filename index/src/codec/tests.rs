//! Every codec there and back, and what is cut, damaged or too long.

use super::*;
use bytes::Bytes;
use proptest::prelude::*;

fn compress(codec: Codec, content: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(codec, Vec::new());
    compressor.write_all(content).unwrap();
    compressor.finish().unwrap()
}

/// Decompresses `packed`, fed in pieces of `piece` bytes and one at a time as asked for.
fn decompress(codec: Codec, packed: &[u8], piece: usize) -> io::Result<Vec<u8>> {
    let mut decoder = Decoder::new(codec);
    let mut pieces = packed.chunks(piece.max(1));
    let mut content = Vec::new();
    loop {
        match decoder.step()? {
            Step::Chunk(chunk) => {
                assert!(!chunk.is_empty());
                content.extend_from_slice(&chunk);
            }
            Step::Hungry => match pieces.next() {
                Some(piece) => decoder.feed(Bytes::copy_from_slice(piece)),
                None => decoder.finish(),
            },
            Step::End => return Ok(content),
        }
    }
}

/// Text that compresses, then bytes that don't.
fn content(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut noise = move || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 24) as u8
    };
    (0..len).map(|at| if at % 8192 < 4096 { b"a line\n"[at % 7] } else { noise() }).collect()
}

#[test]
fn every_codec_gives_back_what_it_took_however_it_is_fed() {
    for codec in Codec::ALL {
        for len in [0, 1, 65_535, 65_536, 300_000] {
            let content = content(len);
            let packed = compress(codec, &content);
            for piece in [1, 3, 7, 4096, usize::MAX] {
                assert!(
                    decompress(codec, &packed, piece).unwrap() == content,
                    "{codec} of {len} by {piece}"
                );
            }
        }
    }
}

#[test]
fn what_is_compressed_so_far_may_be_taken_out() {
    let content = content(1 << 20);
    for codec in Codec::ALL {
        let mut compressor = Compressor::new(codec, Vec::new());
        let mut packed = Vec::new();
        for piece in content.chunks(10_000) {
            compressor.write_all(piece).unwrap();
            packed.append(compressor.get_mut());
        }
        packed.append(&mut compressor.finish().unwrap());
        assert!(decompress(codec, &packed, 4096).unwrap() == content, "{codec}");
    }
}

#[test]
fn gzip_may_have_many_members_and_zstandard_many_frames() {
    for codec in [Codec::Gzip, Codec::GzipOffload, Codec::Zstandard] {
        let packed =
            [compress(codec, b"one, "), compress(codec, b"two, "), compress(codec, b"three")];
        for piece in [1, 5, usize::MAX] {
            let content = decompress(codec, &packed.concat(), piece).unwrap();
            assert_eq!(content, b"one, two, three", "{codec} by {piece}");
        }
    }
}

#[test]
fn offloaded_content_may_come_decompressed() {
    // Case: the store undid it; too short for the magic; nothing at all.
    for content in [&b"plain text"[..], b"x", b"\x1f", b""] {
        assert_eq!(decompress(Codec::GzipOffload, content, 1).unwrap(), content);
    }
}

#[test]
fn a_cut_stream_is_an_error_or_shorter() {
    let content = content(200_000);
    for codec in Codec::ALL {
        let packed = compress(codec, &content);
        for cut in [packed.len() - 1, packed.len() / 2, 5] {
            match decompress(codec, &packed[..cut], 4096) {
                Err(_) => {}
                // Snappy and plain bytes have no end mark: the length tells.
                Ok(part) => assert!(part.len() < content.len(), "{codec} cut at {cut}"),
            }
        }
    }
}

#[test]
fn bytes_after_the_stream_are_an_error() {
    for codec in [Codec::Gzip, Codec::GzipOffload, Codec::Zstandard, Codec::Snappy] {
        let mut packed = compress(codec, b"content");
        packed.extend_from_slice(b"and more");
        for piece in [1, usize::MAX] {
            assert!(decompress(codec, &packed, piece).is_err(), "{codec} by {piece}");
        }
    }
}

proptest! {
    /// No bytes make a decoder panic or go on for ever, and pieces don't change what comes out.
    #[test]
    fn damaged_streams_end(
        flip in any::<prop::sample::Index>(),
        bit in 0..8u32,
        cut in any::<prop::sample::Index>(),
        piece in 1..5000usize,
    ) {
        let content = content(70_000);
        for codec in Codec::ALL {
            let mut packed = compress(codec, &content);
            let at = flip.index(packed.len());
            packed[at] ^= 1 << bit;
            packed.truncate(cut.index(packed.len()) + 1);
            let by_pieces = decompress(codec, &packed, piece).ok();
            let at_once = decompress(codec, &packed, usize::MAX).ok();
            prop_assert!(by_pieces == at_once, "{codec}");
        }
    }
}
